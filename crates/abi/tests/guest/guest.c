// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The guest: the part of a kernel that registers algorithms and calls their operations. */
#include "elephan.h"

#include "connection.h"

#define MOST 64
static struct tcp_congestion_ops *registered[MOST];
static const char *interrupting;

static const struct tcp_congestion_ops *find(const char *name)
{
	unsigned i;

	for (i = 0; i < MOST && registered[i]; i++)
		if (!strcmp(registered[i]->name, name))
			return registered[i];
	return NULL;
}

int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	unsigned i = 0;

	if (!ops->ssthresh || !ops->undo_cwnd || !ops->cong_avoid)
		return -EINVAL;
	if (find(ops->name))
		return -EEXIST;
	while (registered[i])
		i++;
	registered[i] = ops;
	return 0;
}

void guest_interrupt(const char *name)
{
	interrupting = name;
}

u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 cwnd = min64((u64)tp->snd_cwnd + acked, tp->snd_ssthresh);

	if (interrupting) {
		struct tcp_sock other = { .snd_cwnd = 100, .snd_ssthresh = 50, .max_packets_out = 100, .is_cwnd_limited = 1 };

		other.inet_conn.icsk_ca_ops = find(interrupting);
		interrupting = NULL;
		other.inet_conn.icsk_ca_ops->cong_avoid((struct sock *)&other, 0, 1);
	}
	acked -= cwnd - tp->snd_cwnd;
	tp->snd_cwnd = cwnd;
	return acked;
}

u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

/* No segment arrives at a sender. */
void __tcp_send_ack(struct sock *sk, u32 rcv_nxt)
{
	(void)sk;
	(void)rcv_nxt;
	abort();
}

void guest_call(const char *name, enum operation operation, const struct told *told, struct changed *changed)
{
	const struct tcp_congestion_ops *ops = find(name);
	struct ack_sample sample = { .rtt_us = told->rtt_us, .pkts_acked = told->acked };
	struct tcp_sock tp = before(told, changed);
	struct sock *sk = (struct sock *)&tp;

	tp.inet_conn.icsk_ca_ops = ops;
	changed->answer = 0;
	switch (operation) {
	case INIT:
		if (ops->init)
			ops->init(sk);
		break;
	case PKTS_ACKED:
		if (ops->pkts_acked)
			ops->pkts_acked(sk, &sample);
		break;
	case CONG_AVOID:
		ops->cong_avoid(sk, told->snd_una, told->acked);
		break;
	case SSTHRESH:
		changed->answer = ops->ssthresh(sk);
		break;
	case SET_STATE:
		if (ops->set_state)
			ops->set_state(sk, told->state);
		break;
	case UNDO_CWND:
		changed->answer = ops->undo_cwnd(sk);
		break;
	}
	after(&tp, changed);
}
