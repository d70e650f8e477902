// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Layered TCP (Bhandarkar, Jain and Reddy): a flow with K layers grows like K flows of Standard TCP. A layer is added for each
 * step of the window, and each step is larger than the previous one.
 */
#define ALGORITHM ltcp
#include "elephan.h"

enum { W_T, BETA_L };
PARAMETERS = {
	{ "w_t", FIXED(Q20, 50) },
	{ "beta_l", FIXED(Q20, 0.1) },
	{},
};

/* At the smallest beta_l, more layers than a window of 2^20 segments has. */
#define MOST_LAYERS 256

struct state {
	u64 waiting;
	/* The layer of the last window: the window above which it applies, and its step (Q20). */
	u64 from;
	u64 step;
	u32 k;
};

/* alpha_L (equation 8), Q20. */
INLINE u64 ratio(void)
{
	return (ONE20 << Q20) / (ONE20 - 4 * PARAMETER(BETA_L));
}

/* Finds the layer of window w: that K for which W_K < w <= W_K + d_K (equations 1, 3 and 4). */
static __attribute__((__noinline__)) u32 layer(struct state *state, u32 window)
{
	u64 w = (u64)window << Q20, alpha = ratio();
	int i;

	if (!state)
		return 1;
	if (w <= state->from || !state->k) {
		/* Counted up from the first layer each time, so that rounding errors do not accumulate. */
		state->k = 1;
		state->from = 0;
		state->step = PARAMETER(W_T);
	}
	for (i = 0; i < MOST_LAYERS && w > state->from + state->step; i++) {
		state->k++;
		state->from += state->step;
		/* d_K below 2^44 and alpha below 2^25: in two parts. */
		state->step = state->step * (alpha >> Q20) + ((state->step >> 8) * (alpha & (ONE20 - 1)) >> 12);
	}
	return state->k;
}

SEC("struct_ops/ltcp_ssthresh") u32 ltcp_ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 w = tp->snd_cwnd, k = layer(state, w);
	u64 within, given_up;

	state->waiting = 0;
	if (k == 1)
		return threshold(w >> 1);
	/* Equation 6: half of the last layer's step, and up to half of this one's within the layer; 1/alpha_L is 1 - 4 beta_l. */
	within = ((u64)w << Q20) - state->from;
	given_up = ((state->step >> 8) * (ONE20 - 4 * PARAMETER(BETA_L)) >> 12) + ((within >> 8) * 4 * PARAMETER(BETA_L) >> 12);
	return threshold((((u64)w << Q20) - given_up / 2) >> Q20);
}

SEC("struct_ops/ltcp_cong_avoid") void ltcp_cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 acked = after_slow_start(tp, ctx[2]);

	if (acked)
		grow_per_window(tp, &state->waiting, layer(state, tp->snd_cwnd) * ONE20, acked);
}

OPERATIONS = {
	.ssthresh = ltcp_ssthresh,
	.cong_avoid = ltcp_cong_avoid,
	.undo_cwnd = undo_cwnd,
	.name = "el_ltcp",
	.flags = TCP_CONG_NON_RESTRICTED,
};
