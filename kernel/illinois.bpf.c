// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * TCP-Illinois (Liu, Basar and Srikant 2008): losses decide when the window grows and shrinks, and queueing delay decides by how
 * much. The shorter the queue, the larger the increase and the smaller the decrease.
 */
#define ALGORITHM illinois
#include "elephan.h"

enum { ALPHA_MAX, ALPHA_MIN, BETA_MAX, BETA_MIN, D_1, D_2, D_3, THETA, WIN_THRESH };
PARAMETERS = {
	{ "alpha_max", FIXED(Q20, 10) },
	{ "alpha_min", FIXED(Q20, 0.3) },
	{ "beta_max", FIXED(Q20, 0.5) },
	{ "beta_min", FIXED(Q20, 0.125) },
	{ "d_1", FIXED(Q20, 0.01) },
	{ "d_2", FIXED(Q20, 0.1) },
	{ "d_3", FIXED(Q20, 0.8) },
	{ "theta", FIXED(Q20, 5) },
	{ "win_thresh", FIXED(Q20, 15) },
	{},
};

struct state {
	u64 waiting;
	/* Increase in this round trip, Q20. */
	u64 alpha;
	/* Sum of the samples of the round trip, in microseconds. */
	u64 sum_us;
	u32 samples;
	u32 round_end;
	/* The fraction that a loss removes, Q20. */
	u32 beta;
	u32 max_rtt_us;
	/* Whether the delay was above d_1 since the increase was last alpha_max, and round trips below it since. */
	u32 above;
	u32 below;
};

/* Below the window threshold, and after a timeout until a round trip is measured. */
INLINE void standard(struct state *state)
{
	state->alpha = ONE20;
	state->beta = ONE20 / 2;
}

/* The value at `share` (Q20, at most one) of the way from `a` to `b`. */
INLINE u64 mix(u64 a, u64 b, u64 share)
{
	return b >= a ? a + ((b - a) * share >> Q20) : a - ((a - b) * share >> Q20);
}

/* How far `x` is between `low` and `high`, all in microseconds (Q20). */
INLINE u64 share_of(u64 x, u64 low, u64 high)
{
	return min64((x - low) / max64((high - low) >> Q20, 1), ONE20);
}

/* f_1 of section 3, for the next round trip: alpha_max up to d_1, then a hyperbola to alpha_min. Delays are microseconds (Q20). */
INLINE void adapt_alpha(struct state *state, u64 average, u64 longest)
{
	u64 low = PARAMETER(D_1) * (longest >> Q20), rest;

	if (average > low) {
		state->above = 1;
		state->below = 0;
		/* alpha_min alpha_max / (alpha_min + (alpha_max - alpha_min) share) */
		rest = mix(PARAMETER(ALPHA_MIN), PARAMETER(ALPHA_MAX), share_of(average, low, longest));
		state->alpha = PARAMETER(ALPHA_MAX) * ((PARAMETER(ALPHA_MIN) << Q20) / max64(rest, 1)) >> Q20;
		return;
	}
	state->below = min64((u64)state->below + 1, 0xffffffffu);
	if (state->above && (u64)state->below << Q20 < PARAMETER(THETA))
		return;
	state->above = 0;
	state->alpha = PARAMETER(ALPHA_MAX);
}

/* f_2 of section 3: linear from beta_min at d_2 to beta_max at d_3. */
INLINE void adapt_beta(struct state *state, u64 average, u64 longest)
{
	u64 low = PARAMETER(D_2) * (longest >> Q20), high = PARAMETER(D_3) * (longest >> Q20);

	if (average <= low)
		state->beta = PARAMETER(BETA_MIN);
	else if (average >= high)
		state->beta = PARAMETER(BETA_MAX);
	else
		state->beta = mix(PARAMETER(BETA_MIN), PARAMETER(BETA_MAX), share_of(average, low, high));
}

SEC("struct_ops/illinois_init") void illinois_init(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);

	state->alpha = PARAMETER(ALPHA_MAX);
	state->beta = PARAMETER(BETA_MAX);
	state->round_end = tp->snd_nxt;
}

SEC("struct_ops/illinois_ssthresh") u32 illinois_ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);

	state->waiting = 0;
	return threshold((ONE20 - state->beta) * tp->snd_cwnd >> Q20);
}

SEC("struct_ops/illinois_set_state") void illinois_set_state(u64 *ctx)
{
	struct state *state = PRIVATE(SOCK(ctx));

	if (ctx[1] != TCP_CA_Loss)
		return;
	standard(state);
	state->above = 0;
	state->below = 0;
	state->samples = 0;
	state->sum_us = 0;
}

SEC("struct_ops/illinois_pkts_acked") void illinois_pkts_acked(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	const struct ack_sample *sample = (const struct ack_sample *)ctx[1];
	struct state *state = PRIVATE(tp);

	if (is_after(tp->snd_una, state->round_end)) {
		if ((u64)tp->snd_cwnd << Q20 < PARAMETER(WIN_THRESH)) {
			standard(state);
		} else if (state->samples) {
			u64 min_rtt = min_rtt_us(tp), average = (state->sum_us << Q20) / state->samples;
			u64 longest = state->max_rtt_us > min_rtt ? (state->max_rtt_us - min_rtt) << Q20 : 0;

			average -= min64(min_rtt << Q20, average);
			adapt_alpha(state, average, longest);
			adapt_beta(state, average, longest);
		}
		state->round_end = tp->snd_nxt;
		state->samples = 0;
		state->sum_us = 0;
	}
	if (sample->rtt_us > 0) {
		state->max_rtt_us = max64(state->max_rtt_us, sample->rtt_us);
		state->samples++;
		state->sum_us += sample->rtt_us;
	}
}

SEC("struct_ops/illinois_cong_avoid") void illinois_cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 acked = after_slow_start(tp, ctx[2]);

	if (acked)
		grow_per_window(tp, &state->waiting, state->alpha, acked);
}

OPERATIONS = {
	.init = illinois_init,
	.ssthresh = illinois_ssthresh,
	.set_state = illinois_set_state,
	.pkts_acked = illinois_pkts_acked,
	.cong_avoid = illinois_cong_avoid,
	.undo_cwnd = undo_cwnd,
	.name = "el_illinois",
	.flags = TCP_CONG_NON_RESTRICTED,
};
