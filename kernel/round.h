/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The round-trip time of each round trip, for algorithms that estimate a queue from it; as crates/cc/src/round.rs. */
#ifndef ELEPHAN_ROUND_H
#define ELEPHAN_ROUND_H

/* Samples needed to evaluate a round trip: with two, each may be of a delayed ACK. */
#define LEAST_SAMPLES 3
#define NO_RTT 0xffffffffu

struct round {
	/* The round trip is over when this is acknowledged. */
	u32 end;
	u32 samples;
	/* The smallest sample, so that delayed ACKs do not count as queueing. */
	u32 min_us;
};

/* Discards what was measured in this round trip. */
INLINE void round_wipe(struct round *round)
{
	round->samples = 0;
	round->min_us = NO_RTT;
}

INLINE void round_init(struct round *round, const struct tcp_sock *tp)
{
	round->end = tp->snd_nxt;
	round_wipe(round);
}

/* At the ACK that ends a round trip: its round-trip time in microseconds, or zero if it cannot be evaluated. */
INLINE u32 round_rtt(struct round *round, const struct tcp_sock *tp, const struct ack_sample *sample)
{
	u32 rtt = 0;

	if (sample->rtt_us > 0) {
		round->samples++;
		round->min_us = min64(round->min_us, sample->rtt_us);
	}
	if (!is_after(tp->snd_una, round->end))
		return 0;
	if (round->samples >= LEAST_SAMPLES)
		rtt = round->min_us;
	round_init(round, tp);
	return rtt;
}

/* The part of a round-trip time that is queueing, Q32. */
INLINE u64 queueing(u32 rtt, u32 min_rtt)
{
	return rtt > min_rtt ? ((u64)(rtt - min_rtt) << 32) / rtt : 0;
}

#endif
