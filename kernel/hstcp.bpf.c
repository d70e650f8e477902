// SPDX-License-Identifier: GPL-2.0 OR MIT
/* HighSpeed TCP (RFC 3649): an AIMD whose increase and decrease depend on the window. */
#define ALGORITHM hstcp
#include "elephan.h"
#include "hstcp.h"

PARAMETERS = {
	HSTCP_PARAMETERS,
	{},
};

struct state {
	u64 waiting;
	struct response response;
};

SEC("struct_ops/hstcp_init") void hstcp_init(u64 *ctx)
{
	response_init(&PRIVATE(SOCK(ctx))->response);
}

SEC("struct_ops/hstcp_ssthresh") u32 hstcp_ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 w = tp->snd_cwnd;

	state->waiting = 0;
	return threshold(w <= w_low() ? w >> 1 : decrease(&state->response, w));
}

SEC("struct_ops/hstcp_cong_avoid") void hstcp_cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);

	hstcp_grow(tp, &state->waiting, &state->response, after_slow_start(tp, ctx[2]));
}

OPERATIONS = {
	.init = hstcp_init,
	.ssthresh = hstcp_ssthresh,
	.cong_avoid = hstcp_cong_avoid,
	.undo_cwnd = undo_cwnd,
	.name = "el_hstcp",
	.flags = TCP_CONG_NON_RESTRICTED,
};
