// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Compound TCP (draft-sridharan-tcpm-ctcp-02; Tan et al. 2006): the sum of Standard TCP's window and of a delay window, which
 * grows fast while the queue is short and gives way when it is not.
 */
#define ALGORITHM compound
#include "elephan.h"
#include "logarithm.h"
#include "round.h"

enum { ALPHA, K, BETA, ETA, INITIAL_GAMMA, GAMMA_LOW, GAMMA_HIGH, LAMBDA };
PARAMETERS = {
	{ "alpha", FIXED(Q20, 0.125) },
	{ "k", FIXED(Q20, 0.75) },
	{ "beta", FIXED(Q20, 0.5) },
	{ "eta", FIXED(Q20, 1) },
	{ "gamma", FIXED(Q20, 30) },
	{ "gamma_low", FIXED(Q20, 5) },
	{ "gamma_high", FIXED(Q20, 30) },
	{ "lambda", FIXED(Q20, 0.8) },
	{},
};

/* The largest eta and number of queued segments (Q20) that are distinguished, so that products fit. */
#define MOST_ETA (1024 * ONE20)
#define MOST_QUEUED (1ull << 43)
#define NONE (~0ull)

struct state {
	/* Growth of less than a segment, Q32. */
	u64 waiting;
	/* The delay window, which is part of the window, Q32. */
	u64 dwnd;
	u64 gamma; /* Q20 */
	/* What the next ACK takes from the delay window after a round trip with a long queue, Q20. */
	u64 surplus;
	/* Segments that Standard TCP's window had in the queue in the last round trip, Q20; NONE if it was not evaluated. */
	u64 queued;
	/* Growth of the delay window in a round trip at the window `growth_at`, Q20. */
	u64 growth;
	u32 growth_at;
	struct round round;
	u32 is_long;
	u32 state;
};

/* alpha w^k, of which Standard TCP's window grows by one; the last result is kept. */
static __attribute__((__noinline__)) u64 delay_growth(struct state *state, u32 w)
{
	u64 power, all;

	if (!state || !w)
		return 0;
	if (w != state->growth_at) {
		power = exp2_q32(log2_q32(w) * PARAMETER(K) >> Q20);
		all = (power >> 22) * PARAMETER(ALPHA) >> 10;
		state->growth = all > ONE20 ? all - ONE20 : 0;
		state->growth_at = w;
	}
	return state->growth;
}

/* Section 5: adapts `gamma` so that a flow yields before a Standard TCP would lose a segment. */
INLINE void tune(struct state *state)
{
	u64 lambda = PARAMETER(LAMBDA), average;

	if (state->queued != NONE && lambda) {
		average = ((ONE20 - lambda) * min64(state->gamma, MOST_QUEUED) +
			   lambda * min64(state->queued / 4 * 3, MOST_QUEUED)) >> Q20;
		state->gamma = min64(max64(average, PARAMETER(GAMMA_LOW)), PARAMETER(GAMMA_HIGH));
	}
	state->queued = NONE;
}

SEC("struct_ops/compound_init") void compound_init(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);

	state->gamma = PARAMETER(INITIAL_GAMMA);
	state->queued = NONE;
	round_init(&state->round, tp);
}

SEC("struct_ops/compound_ssthresh") u32 compound_ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u64 w = (u64)tp->snd_cwnd << 32, standard = (w - min64(state->dwnd, w)) >> 1;
	u64 left = max64((ONE20 - PARAMETER(BETA)) * tp->snd_cwnd << 12, standard);

	state->waiting = 0;
	state->surplus = 0;
	state->is_long = 0;
	round_wipe(&state->round);
	tune(state);
	state->dwnd = left - standard;
	return threshold(left >> 32);
}

SEC("struct_ops/compound_set_state") void compound_set_state(u64 *ctx)
{
	struct state *state = PRIVATE(SOCK(ctx));

	state->state = ctx[1];
	if (ctx[1] != TCP_CA_Loss)
		return;
	state->dwnd = 0;
	state->surplus = 0;
	state->gamma = PARAMETER(INITIAL_GAMMA);
	state->queued = NONE;
}

SEC("struct_ops/compound_pkts_acked") void compound_pkts_acked(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u64 w = (u64)tp->snd_cwnd << 32, part, queued;
	u32 rtt = round_rtt(&state->round, tp, (const struct ack_sample *)ctx[1]);

	state->dwnd = min64(state->dwnd, w);
	if (!rtt || state->state == TCP_CA_Recovery)
		return;
	part = queueing(rtt, min_rtt_us(tp));
	queued = part * tp->snd_cwnd >> 12;
	state->queued = (part >> 6) * ((w - state->dwnd) >> 26) >> 12;
	state->is_long = queued >= state->gamma;
	state->surplus = 0;
	if (state->is_long)
		state->surplus = min64(state->dwnd >> 12, (queued >> 14) * min64(PARAMETER(ETA), MOST_ETA) >> 6);
}

SEC("struct_ops/compound_cong_avoid") void compound_cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 acked = after_slow_start(tp, ctx[2]), w;
	u64 standard, change;

	if (!acked)
		return;
	w = max64(tp->snd_cwnd, 1);
	standard = ((u64)acked << 32) / w;
	if (state->surplus) {
		state->waiting += standard;
		shrink(tp, &state->waiting, state->surplus);
		state->dwnd -= min64(state->surplus << 12, state->dwnd);
		state->surplus = 0;
		/* A window that gave way does not begin slow start. */
		tp->snd_ssthresh = min64(tp->snd_ssthresh, threshold(tp->snd_cwnd));
		return;
	}
	change = state->is_long ? 0 : (delay_growth(state, w) << 12) / w * acked;
	state->dwnd += change;
	grow(tp, &state->waiting, standard + change, acked);
}

OPERATIONS = {
	.init = compound_init,
	.ssthresh = compound_ssthresh,
	.set_state = compound_set_state,
	.pkts_acked = compound_pkts_acked,
	.cong_avoid = compound_cong_avoid,
	.undo_cwnd = undo_cwnd,
	.name = "el_compound",
	.flags = TCP_CONG_NON_RESTRICTED,
};
