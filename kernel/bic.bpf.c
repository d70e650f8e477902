// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * BIC-TCP (Xu, Harfoush and Rhee 2004; thesis, equations 6.15 to 6.17): a binary search for the window at the last loss, and
 * beyond it a search for a new maximum that starts as slowly.
 */
#define ALGORITHM bic
#include "elephan.h"

enum { B, BETA, LOW_WINDOW, S_MAX, SMOOTH_PART, FAST_CONVERGENCE, LOW_UTILISATION, LOW_THRESHOLD, LOW_PERIOD };
PARAMETERS = {
	{ "b", FIXED(Q20, 4) },
	{ "beta", FIXED(Q20, 0.8) },
	{ "low_window", FIXED(0, 14) },
	{ "s_max", FIXED(Q20, 32) },
	{ "smooth_part", FIXED(Q20, 20) },
	{ "fast_convergence", FIXED(0, 1) },
	{ "low_utilisation", FIXED(0, 0) },
	{ "low_utilisation_threshold", FIXED(Q20, 0.15) },
	{ "low_utilisation_period", FIXED(Q20, 2) },
	{},
};

#define SECOND_US 1000000ull
/* Low-utilisation detection ignores the first second after a loss, when queues are short. */
#define SETTLING_US SECOND_US

struct state {
	u64 waiting;
	/* The window that the search approaches, Q20; zero before the first loss. */
	u64 target;
	/* Earliest time since which the queue may have been short, unless it was longer in between. */
	u64 short_since_us;
	u32 max_rtt_us;
};

/* Equation 6.17: the increase in a round trip at window w, Q20. */
INLINE u64 increase(const struct state *state, u32 window)
{
	u64 w = (u64)window << Q20, b = PARAMETER(B), s_max = PARAMETER(S_MAX);
	u64 smooth = (b << Q20) / PARAMETER(SMOOTH_PART), step;

	if (w < state->target) {
		step = ((state->target - w) << Q20) / b;
		return step <= ONE20 ? smooth : min64(step, s_max);
	}
	if (w - state->target < b)
		return smooth;
	return min64(((w - state->target) << Q20) / (b - ONE20), s_max);
}

SEC("struct_ops/bic_ssthresh") u32 bic_ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 w = tp->snd_cwnd;
	u64 beta = PARAMETER(BETA);

	state->waiting = 0;
	state->short_since_us = tp->tcp_mstamp + SETTLING_US;
	if (((u64)w << Q20) < state->target && PARAMETER(FAST_CONVERGENCE))
		state->target = (ONE20 + beta) * w >> 1;
	else
		state->target = (u64)w << Q20;
	return threshold(w <= PARAMETER(LOW_WINDOW) ? w >> 1 : beta * w >> Q20);
}

SEC("struct_ops/bic_pkts_acked") void bic_pkts_acked(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	const struct ack_sample *sample = (const struct ack_sample *)ctx[1];
	struct state *state = PRIVATE(tp);
	u64 now = tp->tcp_mstamp, queueing, most;
	u32 min_rtt, srtt;

	if (!PARAMETER(LOW_UTILISATION))
		return;
	if (sample->rtt_us > 0 && (u32)sample->rtt_us > state->max_rtt_us)
		state->max_rtt_us = sample->rtt_us;
	min_rtt = min_rtt_us(tp);
	srtt = tp->srtt_us >> 3;
	queueing = srtt > min_rtt ? srtt - min_rtt : 0;
	most = state->max_rtt_us > min_rtt ? state->max_rtt_us - min_rtt : 0;
	if ((queueing << Q20) >= PARAMETER(LOW_THRESHOLD) * most)
		state->short_since_us = max64(state->short_since_us, now);
	else if (now > state->short_since_us &&
		 now - state->short_since_us > PARAMETER(LOW_PERIOD) * SECOND_US >> Q20)
		state->target = 0;
}

SEC("struct_ops/bic_cong_avoid") void bic_cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 acked = after_slow_start(tp, ctx[2]), w;
	u64 a = ONE20;

	if (!acked)
		return;
	w = tp->snd_cwnd;
	if (w > PARAMETER(LOW_WINDOW)) {
		a = increase(state, w);
		/* Without a target, at least 5 % in a round trip (Linux: cnt of 20). */
		if (PARAMETER(LOW_UTILISATION) && !state->target)
			a = max64(a, ((u64)w << Q20) / 20);
	}
	grow_per_window(tp, &state->waiting, a, acked);
}

OPERATIONS = {
	.ssthresh = bic_ssthresh,
	.pkts_acked = bic_pkts_acked,
	.cong_avoid = bic_cong_avoid,
	.undo_cwnd = undo_cwnd,
	.name = "el_bic",
	.flags = TCP_CONG_NON_RESTRICTED,
};
