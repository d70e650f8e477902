// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * TCP Veno (Fu and Liew 2003): Standard TCP that estimates its queue as Vegas does, and takes a loss with a short queue as
 * random.
 */
#define ALGORITHM veno
#include "elephan.h"

enum { BETA, RANDOM };
PARAMETERS = {
	{ "beta", FIXED(Q20, 3) },
	{ "random", FIXED(Q20, 0.8) },
	{},
};

struct state {
	u64 waiting;
	/* The part of the smoothed round-trip time that is queueing, Q32. */
	u64 queueing;
	/* Smallest round-trip time since the last congestion event, in microseconds; zero for none. */
	u32 base_rtt_us;
	/* The window at a congestion event whose cause is not known yet, else zero. */
	u32 reduced;
};

INLINE int is_congested(const struct state *state, u32 window)
{
	return state->queueing * window >> 12 >= PARAMETER(BETA);
}

SEC("struct_ops/veno_ssthresh") u32 veno_ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 w = tp->snd_cwnd;

	state->waiting = 0;
	state->base_rtt_us = 0;
	state->reduced = w;
	return threshold(is_congested(state, w) ? w >> 1 : PARAMETER(RANDOM) * w >> Q20);
}

SEC("struct_ops/veno_set_state") void veno_set_state(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);

	/* Only a loss can be random: a mark and a timeout are congestion. */
	if (state->reduced && (ctx[1] == TCP_CA_CWR || ctx[1] == TCP_CA_Loss))
		tp->snd_ssthresh = threshold(state->reduced >> 1);
	state->reduced = 0;
}

SEC("struct_ops/veno_pkts_acked") void veno_pkts_acked(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	const struct ack_sample *sample = (const struct ack_sample *)ctx[1];
	struct state *state = PRIVATE(tp);
	u64 base;

	if (sample->rtt_us <= 0)
		return;
	if (!state->base_rtt_us || (u32)sample->rtt_us < state->base_rtt_us)
		state->base_rtt_us = sample->rtt_us;
	base = (u64)state->base_rtt_us << 3;
	state->queueing = tp->srtt_us > base ? ((tp->srtt_us - base) << 32) / tp->srtt_us : 0;
}

SEC("struct_ops/veno_cong_avoid") void veno_cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 acked = after_slow_start(tp, ctx[2]);

	if (acked)
		grow_per_window(tp, &state->waiting, is_congested(state, tp->snd_cwnd) ? ONE20 / 2 : ONE20, acked);
}

OPERATIONS = {
	.ssthresh = veno_ssthresh,
	.set_state = veno_set_state,
	.pkts_acked = veno_pkts_acked,
	.cong_avoid = veno_cong_avoid,
	.undo_cwnd = undo_cwnd,
	.name = "el_veno",
	.flags = TCP_CONG_NON_RESTRICTED,
};
