// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Scalable TCP (Kelly 2003): multiplicative increase and decrease. */
#define ALGORITHM scalable
#include "elephan.h"

enum { A, B, LWND, ROUNDING };
enum { FLOOR, CEIL, NONE };
PARAMETERS = {
	{ "a", FIXED(32, 0.01) },
	{ "b", FIXED(32, 0.125) },
	{ "lwnd", FIXED(0, 16) },
	{ "rounding", FIXED(0, FLOOR) },
	{},
};

struct state {
	/* Below lwnd in shares of the window, above in segments. */
	u64 waiting;
};

SEC("struct_ops/scalable_ssthresh") u32 scalable_ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	u32 w = tp->snd_cwnd;
	u64 given_up = PARAMETER(B) * w;

	PRIVATE(tp)->waiting = 0;
	if (w <= PARAMETER(LWND))
		return threshold(w >> 1);
	/* Half a step of b compensates for its rounding: b = 0.1 removes 1 of 10. */
	given_up += w >> 1;
	if (PARAMETER(ROUNDING) != FLOOR)
		given_up += 0xffffffffull - (w & ~1u);
	/* With whole windows there is no unrounded reduction: it removes as much as `ceil`. */
	return threshold(w - (given_up >> 32));
}

SEC("struct_ops/scalable_cong_avoid") void scalable_cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 acked = after_slow_start(tp, ctx[2]), w;

	if (!acked)
		return;
	w = tp->snd_cwnd;
	if (w > PARAMETER(LWND)) {
		grow(tp, &state->waiting, PARAMETER(A) * acked, acked);
		return;
	}
	grow_per_window(tp, &state->waiting, ONE20, acked);
	if (tp->snd_cwnd > PARAMETER(LWND))
		state->waiting = 0;
}

OPERATIONS = {
	.ssthresh = scalable_ssthresh,
	.cong_avoid = scalable_cong_avoid,
	.undo_cwnd = undo_cwnd,
	.name = "el_scalable",
	.flags = TCP_CONG_NON_RESTRICTED,
};
