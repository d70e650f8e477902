// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * FAST TCP (Jin, Wei and Low 2004; thesis, equations 6.18 to 6.20): moves the window to the value at which `alpha` segments of
 * its own are queued. The start phase and the pacing of an update are those of crates/cc/src/fast.rs.
 */
#define ALGORITHM fast
#include "elephan.h"

enum { GAMMA, ALPHA_LOW, ALPHA_MID, ALPHA_HIGH, RATE_LOW, RATE_HIGH, ETA_WINDOW, ETA_MAX, START_THRESHOLD };
PARAMETERS = {
	{ "gamma", FIXED(Q20, 0.5) },
	{ "alpha_low", FIXED(Q20, 8) },
	{ "alpha_mid", FIXED(Q20, 20) },
	{ "alpha_high", FIXED(Q20, 200) },
	{ "rate_low", FIXED(0, 1e7) },
	{ "rate_high", FIXED(0, 1e8) },
	{ "eta_window", FIXED(Q20, 3) },
	{ "eta_max", FIXED(Q20, 0.25) },
	{ "start_threshold", FIXED(Q20, 0.00075) },
	{},
};

/* Maximum number of segments kept queued, so that products fit. */
#define MOST_ALPHA (1ull << 46)
#define SECOND_US 1000000ull
/* Updates are made every other round trip (thesis, section 6.1.5). */
#define ROUNDS 2
#define NO_RTT 0xffffffffu

struct state {
	/* Accumulated changes of less than a segment: upwards and downwards, Q32. */
	u64 waiting;
	u64 waiting_down;
	/* Average round-trip time in microseconds, Q16; zero before the first sample. */
	u64 average_rtt;
	/* Time and position of the last update, or congestion event; zero before the first. */
	u64 updated_us;
	u32 updated_delivered;
	u32 updated_round;
	/* The round trip that is being measured, its end, its smallest round-trip time, and that of the previous one. */
	u32 round;
	u32 round_end;
	u32 round_min_us;
	u32 last_round_min_us;
	/* The remaining part of the last update (Q20), and the part that each acknowledged segment adds (Q32). */
	u64 left;
	u64 pace;
};

/* Segments to keep queued, Q20, from the goodput since the last update. */
INLINE u64 alpha(const struct state *state, const struct tcp_sock *tp)
{
	u64 span = tp->tcp_mstamp - state->updated_us, goodput;

	if (!state->updated_us)
		return PARAMETER(ALPHA_LOW);
	goodput = (u64)(tp->delivered - state->updated_delivered) * tp->mss_cache * 8 * SECOND_US / max64(span, 1);
	if (goodput >= PARAMETER(RATE_HIGH))
		return PARAMETER(ALPHA_HIGH);
	return goodput >= PARAMETER(RATE_LOW) ? PARAMETER(ALPHA_MID) : PARAMETER(ALPHA_LOW);
}

INLINE void updated(struct state *state, const struct tcp_sock *tp)
{
	state->updated_us = tp->tcp_mstamp;
	state->updated_delivered = tp->delivered;
	state->updated_round = state->round;
}

/* Increases the window with the ACKs of a round trip. */
INLINE void step(struct state *state, struct tcp_sock *tp, u32 acked)
{
	u64 growth = min64(state->left << 12, state->pace * acked), up, down;

	state->left -= min64(growth >> 12, state->left);
	state->waiting += growth;
	/* The accumulated downward change is subtracted first. */
	down = min64(state->waiting, state->waiting_down);
	state->waiting -= down;
	state->waiting_down -= down;
	up = min64(state->waiting >> 32, acked);
	tp->snd_cwnd += up;
	state->waiting &= 0xffffffffull;
}

/* Starts to move to `target` (Q20), at most twice the window: down at once, up with the ACKs of a round trip. */
INLINE void update(struct state *state, struct tcp_sock *tp, u64 target, u32 acked)
{
	u64 w = (u64)tp->snd_cwnd << Q20, down;

	updated(state, tp);
	target = min64(target, 2 * w);
	if (target >= w) {
		state->left = target - w;
		state->pace = (state->left << 12) / tp->snd_cwnd;
		step(state, tp, acked);
		return;
	}
	state->left = 0;
	state->pace = 0;
	state->waiting_down += (w - target) << 12;
	down = min64(state->waiting, state->waiting_down);
	state->waiting -= down;
	state->waiting_down -= down;
	down = state->waiting_down >> 32;
	state->waiting_down &= 0xffffffffull;
	tp->snd_cwnd = tp->snd_cwnd > down ? tp->snd_cwnd - down : 1;
}

SEC("struct_ops/fast_init") void fast_init(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);

	state->round_min_us = NO_RTT;
	state->last_round_min_us = NO_RTT;
	state->round_end = tp->snd_nxt;
}

SEC("struct_ops/fast_ssthresh") u32 fast_ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);

	/* Equation 6.19; the next update waits until the round-trip time corresponds to the new window. */
	updated(state, tp);
	state->waiting = 0;
	state->waiting_down = 0;
	state->left = 0;
	state->round_min_us = NO_RTT;
	state->last_round_min_us = NO_RTT;
	return threshold(tp->snd_cwnd >> 1);
}

SEC("struct_ops/fast_pkts_acked") void fast_pkts_acked(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	const struct ack_sample *sample = (const struct ack_sample *)ctx[1];
	struct state *state = PRIVATE(tp);
	u64 eta, rtt;

	if (is_after(tp->snd_una, state->round_end)) {
		state->round++;
		state->round_end = tp->snd_nxt;
		state->last_round_min_us = state->round_min_us;
		state->round_min_us = NO_RTT;
	}
	if (sample->rtt_us <= 0)
		return;
	if ((u32)sample->rtt_us < state->round_min_us)
		state->round_min_us = sample->rtt_us;
	/* Equation 6.20 with the paper's weight. */
	eta = min64(PARAMETER(ETA_WINDOW) / max64(tp->snd_cwnd, 1), PARAMETER(ETA_MAX));
	rtt = (u64)(u32)sample->rtt_us << 16;
	if (!state->average_rtt)
		state->average_rtt = rtt;
	else
		state->average_rtt = ((state->average_rtt >> 4) * (ONE20 - eta) + (rtt >> 4) * eta) >> (Q20 - 4);
}

SEC("struct_ops/fast_cong_avoid") void fast_cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);
	u32 acked = ctx[2];
	u64 w = (u64)tp->snd_cwnd << Q20, ratio, target, min_rtt = min_rtt_us(tp);
	int due = !state->updated_us || state->round - state->updated_round >= ROUNDS;

	if (!is_cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		u64 limit = min_rtt + (PARAMETER(START_THRESHOLD) * SECOND_US >> Q20);

		if (state->last_round_min_us == NO_RTT || state->last_round_min_us <= limit) {
			if (due)
				update(state, tp, 2 * w, acked);
			else
				step(state, tp, acked);
			return;
		}
		/* The rest of the last doubling is dropped, and the equation takes effect. */
		state->left = 0;
		tp->snd_ssthresh = threshold(tp->snd_cwnd);
	}
	if (!due) {
		step(state, tp, acked);
		return;
	}
	/* Equation 6.18. */
	ratio = min64((min_rtt << (16 + Q20)) / max64(state->average_rtt, 1), ONE20);
	target = (ONE20 - PARAMETER(GAMMA)) * tp->snd_cwnd +
		 (PARAMETER(GAMMA) * ((ratio * tp->snd_cwnd + min64(alpha(state, tp), MOST_ALPHA)) >> 4) >> (Q20 - 4));
	update(state, tp, target, acked);
}

OPERATIONS = {
	.init = fast_init,
	.ssthresh = fast_ssthresh,
	.pkts_acked = fast_pkts_acked,
	.cong_avoid = fast_cong_avoid,
	.undo_cwnd = undo_cwnd,
	.name = "el_fast",
	.flags = TCP_CONG_NON_RESTRICTED,
};
