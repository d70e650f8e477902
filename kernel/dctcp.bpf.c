// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Data Center TCP (RFC 8257): a mark reduces the window by the share of segments that are marked, so that a queue with a low
 * marking threshold stays short and the link busy. In the simulator the endpoint is the receiver that echoes each mark.
 */
#define ALGORITHM dctcp
#include "elephan.h"

enum { G, ALPHA };
PARAMETERS = {
	{ "g", FIXED(Q20, 0.0625) },
	{ "alpha", FIXED(32, 1) },
	{},
};

#define ONE32 (1ull << 32)

struct state {
	u64 waiting;
	/* Average share of marked segments, Q32. */
	u64 alpha;
	/* The end of the round trip that is being measured, and the segments that were delivered, and of these marked, before it. */
	u32 round_end;
	u32 delivered;
	u32 marked;
	/* The window at a congestion event whose cause is not known yet, else zero. */
	u32 reduced;
	/* Of the receiver: whether the last segment was marked, and what was received up to it. */
	u32 is_marked;
	u32 received;
};

SEC("struct_ops/dctcp_init") void dctcp_init(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);

	state->alpha = PARAMETER(ALPHA);
	state->round_end = tp->snd_nxt;
	state->delivered = tp->delivered;
	state->marked = tp->delivered_ce;
	state->received = tp->rcv_nxt;
}

SEC("struct_ops/dctcp_ssthresh") u32 dctcp_ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u64 w = tp->snd_cwnd;

	state->waiting = 0;
	state->reduced = w;
	return threshold(((w << 32) - (state->alpha >> 1) * w) >> 32);
}

SEC("struct_ops/dctcp_set_state") void dctcp_set_state(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);

	/* A loss is Standard TCP's (section 3.5). */
	if (state->reduced && (ctx[1] == TCP_CA_Recovery || ctx[1] == TCP_CA_Loss))
		tp->snd_ssthresh = threshold(state->reduced >> 1);
	state->reduced = 0;
}

SEC("struct_ops/dctcp_pkts_acked") void dctcp_pkts_acked(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 delivered = tp->delivered - state->delivered, marked = tp->delivered_ce - state->marked;

	if (!is_after(tp->snd_una, state->round_end))
		return;
	if (delivered) {
		u64 share = min64(((u64)marked << 32) / delivered, ONE32);

		state->alpha = ((ONE20 - PARAMETER(G)) * state->alpha + PARAMETER(G) * share) >> Q20;
	}
	state->round_end = tp->snd_nxt;
	state->delivered = tp->delivered;
	state->marked = tp->delivered_ce;
}

SEC("struct_ops/dctcp_cong_avoid") void dctcp_cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	u32 acked = after_slow_start(tp, ctx[2]);

	if (acked)
		grow_per_window(tp, &PRIVATE(tp)->waiting, ONE20, acked);
}

#if defined(__bpf__) || defined(__KERNEL__)

#ifdef __bpf__
/* Events of a receiver: a segment without a mark, and with one. */
#define CA_EVENT_ECN_NO_CE 4
#define CA_EVENT_ECN_IS_CE 5
/* Acknowledgments carry the echo of a mark. */
#define TCP_ECN_DEMAND_CWR 4
/* A delayed acknowledgment waits; one is sent at once. */
#define ICSK_ACK_TIMER 2
#define ICSK_ACK_NOW 16
static long (*const bpf_tcp_send_ack)(void *tp, u32 rcv_nxt) = (void *)116;
#endif

INLINE void send_ack(struct tcp_sock *tp, u32 rcv_nxt)
{
#ifdef __bpf__
	bpf_tcp_send_ack(tp, rcv_nxt);
#else
	/* Newer kernels have a third argument, flags; a function without it ignores it. Volatile, because the compiler otherwise refuses the call. */
	void (*volatile send)(struct sock *, u32, u16) = (void *)__tcp_send_ack;

	send((struct sock *)tp, rcv_nxt, 0);
#endif
}

INLINE void echo(struct tcp_sock *tp, u32 is_marked)
{
	if (is_marked)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/*
 * The receiver (section 3.2): where marks begin or end, a delayed acknowledgment is sent for the segments before, with their
 * echo, and the segment itself is acknowledged at once.
 */
SEC("struct_ops/dctcp_cwnd_event") void dctcp_cwnd_event(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 is_marked = (u32)ctx[1] == CA_EVENT_ECN_IS_CE;

	if (!is_marked && (u32)ctx[1] != CA_EVENT_ECN_NO_CE)
		return;
	if (is_marked != state->is_marked) {
		if (tp->inet_conn.icsk_ack.pending & ICSK_ACK_TIMER) {
			echo(tp, state->is_marked);
			send_ack(tp, state->received);
		}
		tp->inet_conn.icsk_ack.pending |= ICSK_ACK_NOW;
	}
	state->is_marked = is_marked;
	state->received = tp->rcv_nxt;
	echo(tp, is_marked);
}
#endif

OPERATIONS = {
	.init = dctcp_init,
	.ssthresh = dctcp_ssthresh,
	.set_state = dctcp_set_state,
	.pkts_acked = dctcp_pkts_acked,
	.cong_avoid = dctcp_cong_avoid,
#if defined(__bpf__) || defined(__KERNEL__)
	.cwnd_event = dctcp_cwnd_event,
#endif
	.undo_cwnd = undo_cwnd,
	.name = "el_dctcp",
	.flags = TCP_CONG_NEEDS_ECN,
};
