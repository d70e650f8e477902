// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Standard TCP (RFC 5681), or an AIMD with other parameters. The reference: its windows equal those of the kernel's own reno. */
#define ALGORITHM reno
#include "elephan.h"

enum { A, BETA };
PARAMETERS = {
	{ "a", FIXED(Q20, 1.0) },
	{ "beta", FIXED(Q20, 0.5) },
	{},
};

struct state {
	u64 waiting;
};

SEC("struct_ops/reno_ssthresh") u32 reno_ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);

	PRIVATE(tp)->waiting = 0;
	return threshold(PARAMETER(BETA) * tp->snd_cwnd >> Q20);
}

SEC("struct_ops/reno_cong_avoid") void reno_cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	u32 acked = after_slow_start(tp, ctx[2]);

	if (acked)
		grow_per_window(tp, &PRIVATE(tp)->waiting, PARAMETER(A), acked);
}

OPERATIONS = {
	.ssthresh = reno_ssthresh,
	.cong_avoid = reno_cong_avoid,
	.undo_cwnd = undo_cwnd,
	.name = "el_reno",
	.flags = TCP_CONG_NON_RESTRICTED,
};
