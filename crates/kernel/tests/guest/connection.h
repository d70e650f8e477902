/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A connection that an algorithm controls, in either mode: what it is told, and what it may change. */
#ifndef CONNECTION_H
#define CONNECTION_H

struct told {
	unsigned long long tcp_mstamp;
	unsigned snd_una, snd_nxt, srtt_us, mss_cache, delivered, delivered_ce, max_packets_out, min_rtt_us, is_cwnd_limited;
	int rtt_us;
	unsigned acked;
	unsigned state;
};

struct changed {
	unsigned snd_cwnd, snd_ssthresh;
	/* What the operation returns. */
	unsigned answer;
	unsigned long long private[13];
};

enum operation { INIT, PKTS_ACKED, CONG_AVOID, SSTHRESH, SET_STATE, UNDO_CWND };

/* Both write snd_cwnd and snd_ssthresh into the connection before the call, and read everything after it. */
void host_call(unsigned algorithm, const unsigned long long *values, enum operation operation, const struct told *told,
	       struct changed *changed);
void guest_call(const char *registered, enum operation operation, const struct told *told, struct changed *changed);

/* The next slow start of the guest is interrupted by an ACK of another connection, of this algorithm. Null for none. */
void guest_interrupt(const char *registered);

#endif
