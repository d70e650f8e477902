// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * HighSpeed TCP with fast convergence (Nabeshima and Yata 2004): a flow whose window decreases from loss to loss has more
 * than its share, and halves the window.
 */
#define ALGORITHM hstcp_fc
#include "elephan.h"
#include "hstcp.h"

enum { N1 = B_HIGH + 1, N2, S_DIVISOR, S_MIN, S_MAX };
PARAMETERS = {
	HSTCP_PARAMETERS,
	{ "n1", FIXED(0, 2) },
	{ "n2", FIXED(0, 10) },
	{ "s_divisor", FIXED(Q20, 32) },
	{ "s_min", FIXED(Q20, 50) },
	{ "s_max", FIXED(Q20, 200) },
	{},
};

struct state {
	u64 waiting;
	struct response response;
	/* Largest window of the current downward trend, window at the last loss, losses of the trend. */
	u32 w_max;
	u32 w_prev;
	u32 num_dec;
};

/* Figure 3 of the paper: whether this loss shows that the flow has more than its share. */
static __attribute__((__noinline__)) int is_above_fair_share(struct state *state, u32 w)
{
	u64 s;

	if (!state || w <= w_low())
		return 0;
	if (state->w_prev <= w) {
		state->w_max = w;
		state->w_prev = w;
		state->num_dec = 0;
		return 0;
	}
	state->num_dec++;
	s = ((u64)state->w_max << (2 * Q20)) / max64(PARAMETER(S_DIVISOR), 1);
	s = max64(min64(s, PARAMETER(S_MAX)), PARAMETER(S_MIN));
	if (state->num_dec >= PARAMETER(N1) && state->w_max >= w && ((u64)(state->w_max - w) << Q20) >= s) {
		state->w_max = 0;
		state->w_prev = 0;
		state->num_dec = 0;
		return 1;
	}
	state->w_prev = w;
	if (state->num_dec == PARAMETER(N2)) {
		state->w_max = w;
		state->num_dec = 0;
	}
	return 0;
}

SEC("struct_ops/hstcp_fc_init") void hstcp_fc_init(u64 *ctx)
{
	response_init(&PRIVATE(SOCK(ctx))->response);
}

SEC("struct_ops/hstcp_fc_ssthresh") u32 hstcp_fc_ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 w = tp->snd_cwnd;

	state->waiting = 0;
	if (is_above_fair_share(state, w) || w <= w_low())
		return threshold(w >> 1);
	return threshold(decrease(&state->response, w));
}

SEC("struct_ops/hstcp_fc_cong_avoid") void hstcp_fc_cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);

	hstcp_grow(tp, &state->waiting, &state->response, after_slow_start(tp, ctx[2]));
}

OPERATIONS = {
	.init = hstcp_fc_init,
	.ssthresh = hstcp_fc_ssthresh,
	.cong_avoid = hstcp_fc_cong_avoid,
	.undo_cwnd = undo_cwnd,
	.name = "el_hstcp_fc",
	.flags = TCP_CONG_NON_RESTRICTED,
};
