/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the algorithms use of the kernel's header of this name, with its signatures; members are in an order of their own. */
#ifndef TCP_H
#define TCP_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define __maybe_unused __attribute__((unused))
#define noinline __attribute__((__noinline__))
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

#define TCP_CONG_NON_RESTRICTED 1
#define TCP_CONG_NEEDS_ECN 2
#define TCP_ECN_DEMAND_CWR 4
enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum tcp_ca_event { CA_EVENT_ECN_NO_CE = 4, CA_EVENT_ECN_IS_CE };
enum { ICSK_ACK_TIMER = 2, ICSK_ACK_NOW = 16 };

struct ack_sample {
	s32 rtt_us;
	u32 in_flight;
	u32 pkts_acked;
};

struct sock {
	u64 state;
};

struct tcp_congestion_ops {
	u32 (*undo_cwnd)(struct sock *sk);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	u32 (*ssthresh)(struct sock *sk);
	u32 flags;
	char name[16];
	void (*init)(struct sock *sk);
};

struct inet_connection_sock {
	struct sock sk;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u32 icsk_retransmits;
	struct {
		u8 quick, pending;
	} icsk_ack;
	u64 icsk_ca_priv[13];
};

struct minmax {
	struct {
		u32 t;
		u32 v;
	} s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u8 repair : 1, is_cwnd_limited : 1;
	u8 ecn_flags;
	u32 rcv_nxt;
	u32 delivered_ce;
	u64 tcp_mstamp;
	u32 snd_ssthresh;
	u32 snd_cwnd;
	struct minmax rtt_min;
	u32 max_packets_out;
	u32 delivered;
	u32 mss_cache;
	u32 srtt_us;
	u32 snd_nxt;
	u32 snd_una;
};

static inline struct inet_connection_sock *inet_csk(const struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

static inline long strscpy(char *to, const char *from, size_t size)
{
	size_t length = strlen(from);

	if (length >= size)
		return -E2BIG;
	memcpy(to, from, length + 1);
	return (long)length;
}

/* Defined in guest.c, under names that the host's functions leave free. */
#define tcp_slow_start guest_slow_start
#define tcp_reno_undo_cwnd guest_undo_cwnd
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);
u32 tcp_reno_undo_cwnd(struct sock *sk);
void __tcp_send_ack(struct sock *sk, u32 rcv_nxt);
int tcp_register_congestion_control(struct tcp_congestion_ops *ops);

#endif
