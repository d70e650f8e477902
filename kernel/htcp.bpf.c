// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * H-TCP (Leith and Shorten 2004; thesis, equations 6.7 to 6.14): the increase grows with the time since the last congestion
 * event, and the decrease leaves the queue just empty. The choices that the sources leave open are those of
 * crates/cc/src/htcp.rs.
 */
#define ALGORITHM htcp
#include "elephan.h"

enum { DELTA_L, DELTA_B, BETA_MAX, RTT_SCALING, ADAPTIVE_MIN_RTT, SETTLE };
enum { REFERENCE, SECONDS, OFF };
PARAMETERS = {
	{ "delta_l", FIXED(Q20, 1) },
	{ "delta_b", FIXED(Q20, 0.2) },
	{ "beta_max", FIXED(Q20, 0.8) },
	{ "rtt_scaling", FIXED(0, REFERENCE) },
	{ "adaptive_min_rtt", FIXED(Q20, 0) },
	{ "settle", FIXED(0, 0) },
	{},
};

#define BETA_MIN (ONE20 / 2)
#define SECOND_US 1000000ull
/* Round-trip time at which the increase is not scaled, and limits of the scale (Linux). */
#define REFERENCE_RTT_US (SECOND_US / 10)
#define SCALE_MIN (ONE20 / 10)
#define SCALE_MAX (ONE20 * 2)
/* The increase is computed up to this time after a congestion event, so that squares fit. */
#define LONGEST_US (1000 * SECOND_US)
/* A round-trip time that exceeds the largest by more than this does not count as queueing. */
#define MAX_RTT_RISE_US 20000

struct state {
	u64 waiting;
	u64 last_congestion_us;
	/* Smoothed goodput of this epoch and before the last congestion event, segments per second (Q16); zero for none. */
	u64 goodput;
	u64 goodput_before;
	u64 round_began_us;
	u32 round_delivered;
	/* The round trip is over when this is acknowledged. */
	u32 round_end;
	u32 max_rtt_us;
	u32 beta; /* Q20 */
	u32 settled;
	u32 state;
	u32 is_full; /* whether no part of the round trip was in recovery */
};

/* Equations 6.9 and 6.11, Q20. */
INLINE u64 alpha(const struct state *state, u64 now, u32 min_rtt)
{
	u64 delta = min64(now - state->last_congestion_us, LONGEST_US);
	u64 delta_l = PARAMETER(DELTA_L) * SECOND_US >> Q20;
	u64 over, ms, f, scale = ONE20;

	if (delta <= delta_l)
		return ONE20;
	over = delta - delta_l;
	ms = over / 1000;
	f = ONE20 + (over << Q20) / (SECOND_US / 10) + (ms * ms << Q20) / 4000000;
	if (PARAMETER(RTT_SCALING) == REFERENCE)
		scale = max64(min64(((u64)min_rtt << Q20) / REFERENCE_RTT_US, SCALE_MAX), SCALE_MIN);
	else if (PARAMETER(RTT_SCALING) == SECONDS)
		scale = ((u64)min_rtt << Q20) / SECOND_US;
	return max64(f * scale >> Q20, ONE20);
}

/* Whether goodput is measured in the state of the sender. */
INLINE int is_measured(const struct state *state)
{
	return state->state <= TCP_CA_Disorder;
}

/* Equation 6.10: the fraction of the window that this congestion event leaves, Q20. */
INLINE u32 adapt(struct state *state, u32 min_rtt)
{
	u64 now = state->goodput, before = state->goodput_before;
	u64 change = now > before ? now - before : before - now;
	/* A factor above 64 is treated as infinite. */
	u64 limit = before * min64(PARAMETER(DELTA_B), 64 * ONE20) >> Q20;
	int changed = !before || (now && change > limit && PARAMETER(DELTA_B) < 64 * ONE20);
	int settled = state->settled;

	state->settled = !changed;
	if (changed || (PARAMETER(SETTLE) && !settled) || !state->max_rtt_us ||
	    ((u64)min_rtt << Q20) < PARAMETER(ADAPTIVE_MIN_RTT) * SECOND_US)
		return BETA_MIN;
	return max64(min64(((u64)min_rtt << Q20) / state->max_rtt_us, PARAMETER(BETA_MAX)), BETA_MIN);
}

SEC("struct_ops/htcp_init") void htcp_init(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);

	state->beta = BETA_MIN;
	state->round_end = tp->snd_nxt;
}

SEC("struct_ops/htcp_ssthresh") u32 htcp_ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 min_rtt = min_rtt_us(tp);

	state->waiting = 0;
	state->beta = adapt(state, min_rtt);
	if (state->goodput)
		state->goodput_before = state->goodput;
	state->goodput = 0;
	state->is_full = 0;
	state->last_congestion_us = tp->tcp_mstamp;
	/* The largest round-trip time fades by 5 % of the queueing. */
	if (state->max_rtt_us > min_rtt)
		state->max_rtt_us = min_rtt + (u64)(state->max_rtt_us - min_rtt) * 95 / 100;
	return threshold((u64)state->beta * tp->snd_cwnd >> Q20);
}

SEC("struct_ops/htcp_set_state") void htcp_set_state(u64 *ctx)
{
	PRIVATE(SOCK(ctx))->state = ctx[1];
}

SEC("struct_ops/htcp_pkts_acked") void htcp_pkts_acked(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	const struct ack_sample *sample = (const struct ack_sample *)ctx[1];
	struct state *state = PRIVATE(tp);
	u64 now = tp->tcp_mstamp, span, rate;

	if (!state->last_congestion_us)
		state->last_congestion_us = now;
	if (sample->rtt_us > 0 && state->state == TCP_CA_Open) {
		state->max_rtt_us = max64(state->max_rtt_us, min_rtt_us(tp));
		if ((u32)sample->rtt_us <= state->max_rtt_us + MAX_RTT_RISE_US)
			state->max_rtt_us = max64(state->max_rtt_us, sample->rtt_us);
	}
	state->is_full &= is_measured(state);
	if (!is_after(tp->snd_una, state->round_end))
		return;
	span = now - state->round_began_us;
	if (state->is_full && span) {
		rate = ((u64)(tp->delivered - state->round_delivered) * SECOND_US << 16) / span;
		state->goodput = state->goodput ? (3 * state->goodput + rate) >> 2 : rate;
	}
	state->is_full = is_measured(state);
	state->round_began_us = now;
	state->round_delivered = tp->delivered;
	state->round_end = tp->snd_nxt;
}

SEC("struct_ops/htcp_cong_avoid") void htcp_cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 acked = after_slow_start(tp, ctx[2]);
	u64 a;

	if (!acked)
		return;
	a = alpha(state, tp->tcp_mstamp, min_rtt_us(tp));
	grow_per_window(tp, &state->waiting, 2 * (ONE20 - state->beta) * a >> Q20, acked);
}

OPERATIONS = {
	.init = htcp_init,
	.ssthresh = htcp_ssthresh,
	.set_state = htcp_set_state,
	.pkts_acked = htcp_pkts_acked,
	.cong_avoid = htcp_cong_avoid,
	.undo_cwnd = undo_cwnd,
	.name = "el_htcp",
	.flags = TCP_CONG_NON_RESTRICTED,
};
