// SPDX-License-Identifier: GPL-2.0 OR MIT
/* What an algorithm in the form of those in kernel/ calls of the kernel, on the host. */
#define ALGORITHM host
#include "elephan.h"

_Thread_local const u64 *el_values;

/* As tcp_slow_start() in net/ipv4/tcp_cong.c; the host has no clamp. */
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 cwnd = min64((u64)tp->snd_cwnd + acked, tp->snd_ssthresh);

	acked -= cwnd - tp->snd_cwnd;
	tp->snd_cwnd = cwnd;
	return acked;
}

/* As tcp_reno_undo_cwnd(); the endpoint restores the window by itself, and never asks. */
u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}
