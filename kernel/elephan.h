/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Shared by all algorithms: the few kernel types that they use, parameters, fixed point.
 *
 * Each file compiles in three modes:
 * - by clang for eBPF (__bpf__), where it becomes a tcp_congestion_ops of the running kernel;
 * - into a guest kernel (__KERNEL__), with the kernel's own headers and types; uml/algorithms.c registers it;
 * - by any C compiler for the host, where tests compare it with the same algorithm in floating point and the simulator can
 *   run it.
 * An operation has the calling form of eBPF in all three: its arguments are an array of words.
 *
 * For eBPF, types are declared with only the members that are used; the loader relocates them to their offsets in the
 * running kernel (CO-RE), so one object fits many kernels and no vmlinux.h is needed. Arithmetic is integer: the verifier
 * rejects floats, and clang 14 rejects signed division.
 */
#ifndef ELEPHAN_H
#define ELEPHAN_H

#ifdef __KERNEL__
#include "algorithms.h"
#else
typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
#endif

#ifdef __bpf__
#define SEC(name) __attribute__((section(name), used))
#define RELOCATED __attribute__((preserve_access_index))
#define KFUNC __attribute__((section(".ksyms")))
/* An operation with the same name in every file: a program of each object, and on the host private to each file. */
#define SHARED(name) SEC(name)
#elif defined(__KERNEL__)
/* All is private to its file. */
#define SEC(name) static
#define SHARED(name) static __maybe_unused
#else
#define SEC(name)
#define RELOCATED
#define KFUNC
#define SHARED(name) static __attribute__((unused))
#endif
#define INLINE static inline __attribute__((always_inline))

#ifdef __bpf__
/* Only GPL programs may call kfuncs. */
char el_license[] SEC("license") = "Dual MIT/GPL";
#endif

/* ---- The kernel ---- */

#ifndef __KERNEL__
struct sock {
	int unused;
} RELOCATED;

struct inet_connection_sock {
	u64 icsk_ca_priv[13];
	struct {
		u8 pending; /* which acknowledgments are due: ICSK_ACK_TIMER, ... */
	} icsk_ack;
} RELOCATED;

struct minmax_sample {
	u32 t;
	u32 v;
} RELOCATED;

struct minmax {
	struct minmax_sample s[3];
} RELOCATED;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 snd_una;
	u32 snd_nxt;
	u32 rcv_nxt;
	u32 srtt_us; /* smoothed round-trip time, in eighths of a microsecond */
	u32 mss_cache;
	u32 delivered;
	u32 delivered_ce; /* of these, segments whose ACK echoed a mark */
	u32 max_packets_out;
	u64 tcp_mstamp; /* time of the newest packet, in microseconds */
	struct minmax rtt_min;
	u8 ecn_flags;
	u8 is_cwnd_limited : 1;
} RELOCATED;

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
} RELOCATED;

/* Any program may select it, not only those of root. */
#define TCP_CONG_NON_RESTRICTED 1
/* Its connections negotiate ECN. */
#define TCP_CONG_NEEDS_ECN 2

extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) KFUNC;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) KFUNC;

/* States of a sender: data in order, out of order; the response to a mark; loss recovery; after a timeout. */
#define TCP_CA_Open 0
#define TCP_CA_Disorder 1
#define TCP_CA_CWR 2
#define TCP_CA_Recovery 3
#define TCP_CA_Loss 4
#endif

/* Only the operations of the kernel's struct that are used; eBPF matches members by name. */
#ifdef __KERNEL__
struct elephan_operations {
#else
struct tcp_congestion_ops {
#endif
	u32 (*ssthresh)(u64 *ctx);
	void (*cong_avoid)(u64 *ctx);
	u32 (*undo_cwnd)(u64 *ctx);
	void (*set_state)(u64 *ctx);
	void (*cwnd_event)(u64 *ctx);
	void (*pkts_acked)(u64 *ctx);
	void (*init)(u64 *ctx);
	char name[16];
	u32 flags;
};

/* The arguments of an operation are passed as an array of words. */
#define SOCK(ctx) ((struct tcp_sock *)(ctx)[0])
#define PRIVATE(tp) ({ \
	_Static_assert(sizeof(struct state) <= sizeof((tp)->inet_conn.icsk_ca_priv), "the state of a connection is too large"); \
	(struct state *)(tp)->inet_conn.icsk_ca_priv; \
})

INLINE int in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* Whether the window limits the sender, as in the kernel's own tcp_is_cwnd_limited(). */
INLINE int is_cwnd_limited(const struct tcp_sock *tp)
{
#ifdef __bpf__
	/* A bit field: its position in the kernel is known when the object is loaded. */
	const void *at = (const char *)tp + __builtin_preserve_field_info(tp->is_cwnd_limited, 0);
	u64 value = 0;

	switch (__builtin_preserve_field_info(tp->is_cwnd_limited, 1)) {
	case 1: value = *(const u8 *)at; break;
	case 2: value = *(const unsigned short *)at; break;
	case 4: value = *(const u32 *)at; break;
	case 8: value = *(const u64 *)at; break;
	}
	value <<= __builtin_preserve_field_info(tp->is_cwnd_limited, 4);
	value >>= __builtin_preserve_field_info(tp->is_cwnd_limited, 5);
	if (value)
		return 1;
#else
	if (tp->is_cwnd_limited)
		return 1;
#endif
	return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

INLINE u32 min_rtt_us(const struct tcp_sock *tp)
{
	return tp->rtt_min.s[0].v;
}

/* Whether sequence number `a` is after `b`: a round trip ends when data sent after its beginning is acknowledged. */
INLINE int is_after(u32 a, u32 b)
{
	return (s32)(a - b) > 0;
}

/* ---- Parameters ---- */

/*
 * A parameter in fixed point: value / 2^bits. Names, meanings and ranges are those of crates/cc, whose words (such as "floor")
 * are numbered from zero here. The loader finds the table by its section and writes other values into it before verification,
 * so parameters are constants for the verifier.
 */
struct parameter {
	char name[32];
	u64 bits;
	u64 value;
};

#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define TABLE JOIN(el_, ALGORITHM, _parameters)
#define PARAMETERS SEC(".rodata.parameters") const volatile struct parameter TABLE[]
#define FIXED(bits, value) (bits), (u64)((value) * (1ull << (bits)) + 0.5)

#ifdef __bpf__
extern const volatile struct parameter TABLE[];
#define PARAMETER(index) (TABLE[index].value)
#else
/* The values of the current connection, in the table's order. */
#ifndef __KERNEL__
extern _Thread_local const u64 *el_values;
#endif
#define PARAMETER(index) (el_values[index])
#endif

/* ---- Registration ---- */

/* The operations of an algorithm: the last thing in its file. */
#define REGISTERED JOIN(el_, ALGORITHM, )
#ifdef __KERNEL__
#define OPERATIONS \
	static const struct elephan_operations REGISTERED; \
	static struct elephan_entry entry = { .operations = &REGISTERED, .table = TABLE }; \
	static int __init enter(void) \
	{ \
		return elephan_enter(&entry); \
	} \
	late_initcall(enter); \
	static const struct elephan_operations REGISTERED
#else
#define OPERATIONS SEC(".struct_ops") struct tcp_congestion_ops REGISTERED
#endif

/* ---- Fixed point ---- */

#define Q20 20
#define ONE20 (1ull << Q20)

/* Smallest threshold (RFC 5681, equation 4). */
#define MIN_SSTHRESH 2u

INLINE u64 min64(u64 a, u64 b)
{
	return a < b ? a : b;
}

INLINE u64 max64(u64 a, u64 b)
{
	return a > b ? a : b;
}

INLINE u32 threshold(u64 segments)
{
	return max64(segments, MIN_SSTHRESH);
}

/*
 * Grows the window by `a` segments (Q20) for each window of acknowledged segments. Growth of less than a segment accumulates in
 * `waiting`, as a share of the window (Q20), so that nothing is lost to rounding. No ACK adds more than in slow start.
 */
INLINE void grow_per_window(struct tcp_sock *tp, u64 *waiting, u64 a, u32 acked)
{
	u64 segment = (u64)tp->snd_cwnd << Q20;
	u64 grown;

	*waiting += a * acked;
	if (*waiting < segment)
		return;
	grown = *waiting / segment;
	*waiting -= grown * segment;
	tp->snd_cwnd += min64(grown, acked);
}

/* Grows the window by `growth` segments (Q32). */
INLINE void grow(struct tcp_sock *tp, u64 *waiting, u64 growth, u32 acked)
{
	*waiting += growth;
	tp->snd_cwnd += min64(*waiting >> 32, acked);
	*waiting &= 0xffffffffull;
}

/* Removes `surplus` segments (Q20) from the window; it never falls below one. */
INLINE void shrink(struct tcp_sock *tp, u64 *waiting, u64 surplus)
{
	u64 window = ((u64)tp->snd_cwnd << 32) + *waiting, left = window - min64(surplus << 12, window);

	tp->snd_cwnd = max64(left >> 32, 1);
	*waiting = left & 0xffffffffull;
}

/*
 * Slow start uses its part of the acknowledged segments; returns the rest, for congestion avoidance. The rest is zero if the
 * window does not limit the sender.
 */
INLINE u32 after_slow_start(struct tcp_sock *tp, u32 acked)
{
	if (!is_cwnd_limited(tp))
		return 0;
	return in_slow_start(tp) ? tcp_slow_start(tp, acked) : acked;
}

/* All algorithms undo a spurious loss in the same way: they restore the previous window. */
SHARED("struct_ops/undo_cwnd") u32 undo_cwnd(u64 *ctx)
{
	return tcp_reno_undo_cwnd((struct sock *)ctx[0]);
}

#endif
