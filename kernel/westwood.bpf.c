// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * TCP Westwood+ (Grieco and Mascolo 2004): grows as Standard TCP; at a loss the threshold is what the path carries without a
 * queue, the delivery rate times the smallest round-trip time.
 */
#define ALGORITHM westwood
#include "elephan.h"

enum { ALPHA };
PARAMETERS = {
	{ "alpha", FIXED(Q20, 0.9) },
	{},
};

#define SECOND_US 1000000ull
/* The largest bandwidth, so that products fit: 2^27 segments per second. */
#define MOST_BANDWIDTH (1ull << 43)

struct state {
	u64 waiting;
	/* Average bandwidth in segments per second, Q16. */
	u64 bandwidth;
	u32 is_measured;
	/* The round trip that is being measured: its beginning, moved later by any time in which nothing was sent, the segments
	 * delivered until then, and its end. */
	u32 round_delivered;
	u64 round_began_us;
	u32 round_end;
	/* When all that was sent had been acknowledged, unless more was acknowledged since; else zero. */
	u64 idle_since_us;
};

SEC("struct_ops/westwood_ssthresh") u32 westwood_ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	struct state *state = PRIVATE(tp);

	state->waiting = 0;
	if (!state->is_measured)
		return threshold(tp->snd_cwnd >> 1);
	return threshold(min64((state->bandwidth >> 8) * min_rtt_us(tp) / SECOND_US >> 8, 0x7fffffff));
}

SEC("struct_ops/westwood_pkts_acked") void westwood_pkts_acked(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	const struct ack_sample *sample = (const struct ack_sample *)ctx[1];
	struct state *state = PRIVATE(tp);
	u64 now = tp->tcp_mstamp, span, rate;

	if (!state->round_began_us) {
		state->round_began_us = now;
		state->round_delivered = tp->delivered;
		state->round_end = tp->snd_nxt;
	}
	/* The bandwidth is that of the time in which data was sent. */
	if (state->idle_since_us && sample->rtt_us > 0 && now - sample->rtt_us > state->idle_since_us)
		state->round_began_us += now - sample->rtt_us - state->idle_since_us;
	state->idle_since_us = tp->snd_una == tp->snd_nxt ? now : 0;
	/* A sample is of a whole round trip: one for each ACK would take compressed ACKs for bandwidth. */
	if (!is_after(tp->snd_una, state->round_end) || now <= state->round_began_us)
		return;
	span = now - state->round_began_us;
	rate = min64(((u64)(tp->delivered - state->round_delivered) * SECOND_US << 16) / span, MOST_BANDWIDTH);
	if (state->is_measured)
		rate = (PARAMETER(ALPHA) * state->bandwidth + (ONE20 - PARAMETER(ALPHA)) * rate) >> Q20;
	state->bandwidth = rate;
	state->is_measured = 1;
	state->round_began_us = now;
	state->round_delivered = tp->delivered;
	state->round_end = tp->snd_nxt;
}

SEC("struct_ops/westwood_cong_avoid") void westwood_cong_avoid(u64 *ctx)
{
	struct tcp_sock *tp = SOCK(ctx);
	u32 acked = after_slow_start(tp, ctx[2]);

	if (acked)
		grow_per_window(tp, &PRIVATE(tp)->waiting, ONE20, acked);
}

OPERATIONS = {
	.ssthresh = westwood_ssthresh,
	.pkts_acked = westwood_pkts_acked,
	.cong_avoid = westwood_cong_avoid,
	.undo_cwnd = undo_cwnd,
	.name = "el_westwood",
	.flags = TCP_CONG_NON_RESTRICTED,
};
