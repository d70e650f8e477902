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

/* The kernel's connection before an operation. */
INLINE struct tcp_sock before(const struct told *told, const struct changed *changed)
{
	struct tcp_sock tp = {
		.snd_cwnd = changed->snd_cwnd,
		.snd_ssthresh = changed->snd_ssthresh,
		.tcp_mstamp = told->tcp_mstamp,
		.snd_una = told->snd_una,
		.snd_nxt = told->snd_nxt,
		.srtt_us = told->srtt_us,
		.mss_cache = told->mss_cache,
		.delivered = told->delivered,
		.delivered_ce = told->delivered_ce,
		.max_packets_out = told->max_packets_out,
		.is_cwnd_limited = told->is_cwnd_limited,
	};

	tp.rtt_min.s[0].v = told->min_rtt_us;
	memcpy(tp.inet_conn.icsk_ca_priv, changed->private, sizeof(changed->private));
	return tp;
}

/* What the operation left in it. */
INLINE void after(const struct tcp_sock *tp, struct changed *changed)
{
	changed->snd_cwnd = tp->snd_cwnd;
	changed->snd_ssthresh = tp->snd_ssthresh;
	memcpy(changed->private, tp->inet_conn.icsk_ca_priv, sizeof(changed->private));
}

void host_call(unsigned algorithm, const unsigned long long *values, enum operation operation, const struct told *told,
	       struct changed *changed);
void guest_call(const char *registered, enum operation operation, const struct told *told, struct changed *changed);

/* The next slow start of the guest is interrupted by an ACK of another connection, of this algorithm. Null for none. */
void guest_interrupt(const char *registered);

#endif
