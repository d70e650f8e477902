// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * YeAH-TCP (Baiocchi, Castellani and Vacirca 2007): grows as Scalable TCP while its queue is short and as Standard TCP beyond,
 * where it also drains the queue before there is a loss.
 */
#define ALGORITHM yeah
#include "elephan.h"
#include "round.h"

enum { A, ALPHA, PHY, GAMMA, EPSILON, DELTA, RHO, ZETA };
PARAMETERS = {
	{ "a", FIXED(32, 0.01) },
	{ "alpha", FIXED(Q20, 80) },
	{ "phy", FIXED(Q20, 8) },
	{ "gamma", FIXED(Q20, 1) },
	{ "epsilon", FIXED(Q20, 0.5) },
	{ "delta", FIXED(Q20, 0.125) },
	{ "rho", FIXED(Q20, 16) },
	{ "zeta", FIXED(Q20, 50) },
	{},
};

/* Smallest estimate of the window of a competing Standard TCP, Q20. */
#define LEAST (2 * ONE20)

struct state {
	/* Growth of less than a segment, Q32. */
	u64 waiting;
	/* Segments queued in the last round trip that was evaluated, and those of them that the next ACK removes, Q20. */
	u64 queued;
	u64 surplus;
	/* Window that a Standard TCP in its place would have, Q20. The queue is not drained below it. */
	u64 reno_window;
	struct round round;
	/* Successive round trips in the slow mode, and round trips in the fast mode since a loss. */
	u32 slow;
	u32 fast;
	u32 state;
};

/* A round trip has ended, of which `rtt` is the round-trip time. */
INLINE void evaluate(struct state *state, u32 window, u32 rtt, u32 min_rtt)
{
	u64 w = (u64)window << Q20, delay = rtt > min_rtt ? rtt - min_rtt : 0;

	state->queued = queueing(rtt, min_rtt) * window >> 12;
	state->surplus = 0;
	if (state->queued <= PARAMETER(ALPHA) && delay << 12 <= ((u64)min_rtt << 32) / max64(PARAMETER(PHY), 1)) {
		state->slow = 0;
		state->fast++;
		if ((u64)state->fast << Q20 > PARAMETER(ZETA)) {
			state->reno_window = LEAST;
			state->fast = 0;
		}
		return;
	}
	if (state->queued > PARAMETER(ALPHA) && w > state->reno_window) {
		u64 drained = min64((state->queued >> 8) * PARAMETER(GAMMA) >> 12, PARAMETER(EPSILON) * window);

		state->surplus = min64(drained, w - state->reno_window);
	}
	if (state->reno_window <= LEAST)
		state->reno_window = max64((w - state->surplus) >> 1, LEAST);
	else
		state->reno_window += ONE20;
	state->slow = min64((u64)state->slow + 1, 0xffffffffu);
}

SEC("struct_ops/yeah_init") void yeah_init(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);

	state->reno_window = LEAST;
	round_init(&state->round, tp);
}

SEC("struct_ops/yeah_ssthresh") u32 yeah_ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u64 w = (u64)tp->snd_cwnd << Q20, removed = w >> 1;

	if ((u64)state->slow << Q20 < PARAMETER(RHO))
		removed = max64(min64(state->queued, removed), PARAMETER(DELTA) * tp->snd_cwnd);
	state->waiting = 0;
	state->surplus = 0;
	round_wipe(&state->round);
	state->fast = 0;
	state->reno_window = max64(state->reno_window >> 1, LEAST);
	return threshold((w - removed) >> Q20);
}

SEC("struct_ops/yeah_set_state") void yeah_set_state(u64 *ctx)
{
	PRIVATE(SOCK(ctx))->state = ctx[1];
}

SEC("struct_ops/yeah_pkts_acked") void yeah_pkts_acked(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 rtt = round_rtt(&state->round, tp, (const struct ack_sample *)ctx[1]);

	if (rtt && state->state != TCP_CA_Recovery)
		evaluate(state, tp->snd_cwnd, rtt, min_rtt_us(tp));
}

SEC("struct_ops/yeah_cong_avoid") void yeah_cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 acked = ctx[2];
	u64 standard;

	if (state->surplus && is_cwnd_limited(tp)) {
		/* Slow start ends when the queue is drained, and a drained queue does not begin one. */
		shrink(tp, &state->waiting, state->surplus);
		state->surplus = 0;
		tp->snd_ssthresh = min64(tp->snd_ssthresh, threshold(tp->snd_cwnd));
		return;
	}
	acked = after_slow_start(tp, acked);
	if (!acked)
		return;
	standard = ((u64)acked << 32) / tp->snd_cwnd;
	grow(tp, &state->waiting, state->slow ? standard : max64(standard, PARAMETER(A) * acked), acked);
}

OPERATIONS = {
	.init = yeah_init,
	.ssthresh = yeah_ssthresh,
	.set_state = yeah_set_state,
	.pkts_acked = yeah_pkts_acked,
	.cong_avoid = yeah_cong_avoid,
	.undo_cwnd = undo_cwnd,
	.name = "el_yeah",
	.flags = TCP_CONG_NON_RESTRICTED,
};
