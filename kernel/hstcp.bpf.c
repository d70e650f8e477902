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
	u32 acked = ctx[2], w;

	if (!is_cwnd_limited(tp))
		return;
	acked = slow_start(tp, acked);
	w = tp->snd_cwnd;
	if (acked)
		grow_per_window(tp, &state->waiting, w <= w_low() ? ONE20 : increase(&state->response, w), acked);
}

SEC("struct_ops/hstcp_undo_cwnd") u32 hstcp_undo_cwnd(u64 *ctx)
{
	return tcp_reno_undo_cwnd((struct sock *)ctx[0]);
}

SEC(".struct_ops") struct tcp_congestion_ops el_hstcp = {
	.init = hstcp_init,
	.ssthresh = hstcp_ssthresh,
	.cong_avoid = hstcp_cong_avoid,
	.undo_cwnd = hstcp_undo_cwnd,
	.name = "el_hstcp",
	.flags = TCP_CONG_NON_RESTRICTED,
};
