/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The interface of a congestion control algorithm in C, for `cc = "lib:./mine.so"`.
 *
 * A shared object exports one table:
 *
 *     const struct elephan_cc elephan_cc = { .abi = ELEPHAN_CC_ABI, .size = sizeof(struct elephan_cc), .name = "mine", ... };
 *
 * Functions that are NULL are not called, except for those that say "required". Each connection has a state of its own; calls for
 * one connection come one after the other, calls for different connections may come from different threads at the same time.
 * Segments are full-sized segments of `mss` bytes. Times are in nanoseconds of simulated (or real) time, and never zero.
 *
 * Changes that keep old objects working append members to the structures; `size` tells which members the table of an object has. All
 * other changes raise ELEPHAN_CC_ABI.
 */
#ifndef ELEPHAN_CC_H
#define ELEPHAN_CC_H

#include <stdint.h>

#define ELEPHAN_CC_ABI 1u

/* The states of a sender, as Linux numbers them (include/uapi/linux/tcp.h, tcp_ca_state). */
enum elephan_cc_state {
	ELEPHAN_CC_OPEN = 0,
	ELEPHAN_CC_DISORDER = 1, /* duplicate or selective acknowledgments arrive, and nothing is taken as lost */
	ELEPHAN_CC_CWR = 2,      /* the window was reduced without a loss: for a mark, or a full device queue */
	ELEPHAN_CC_RECOVERY = 3, /* fast recovery */
	ELEPHAN_CC_LOSS = 4,     /* slow start after a timeout */
};

/* What a table asks of the endpoint: a sum of these. */
enum elephan_cc_flag {
	/* The algorithm sets cwnd in recovery, too: the endpoint's own recovery window is not used. */
	ELEPHAN_CC_GOVERNS_RECOVERY = 1,
	/* `rate` of each ACK is filled in, and `sent_in_flight`. It costs a record for each segment in flight. */
	ELEPHAN_CC_NEEDS_RATE = 2,
	/* Connections negotiate ECN, and the receiver echoes each mark as in DCTCP (RFC 8257, section 3.2). */
	ELEPHAN_CC_NEEDS_ECN = 4,
};

/* What an algorithm asks of the endpoint when a function returns. */
enum elephan_cc_request {
	/* A reduction without a loss or a mark, for a delay: the endpoint enters CWR, unless it is in CWR, recovery or loss already, and calls
	   on_congestion with ELEPHAN_CC_CAUSE_ECN when it has processed the ACK. */
	ELEPHAN_CC_REQUEST_CWR = 1,
};

/* The window: the endpoint's values when a function is called, the algorithm's when it returns. */
struct elephan_cc_window {
	double cwnd;        /* segments; 1 to 2^31 */
	double ssthresh;    /* segments; infinite until the first congestion event */
	double pacing_rate; /* bytes of payload per second; 0: as the endpoint's own settings say */
	uint64_t requests;  /* a sum of enum elephan_cc_request; 0 when a function is called */
};

/* A delivery-rate sample (draft-ietf-ccwg-bbr; Linux, net/ipv4/tcp_rate.c), of the newest segment that an ACK delivered. */
struct elephan_cc_rate {
	int64_t interval_ns;       /* length of the sample; 0 or less: no sample */
	uint64_t prior_delivered;  /* `delivered` when that segment was sent */
	uint64_t prior_delivered_ce;
	uint32_t delivered;        /* segments delivered since */
	uint32_t delivered_ce;     /* of these, segments whose ACK echoed a mark */
	uint32_t lost;             /* segments found lost at this ACK */
	uint32_t is_app_limited;   /* the sender ran out of data during the sample */
	uint32_t is_ack_delayed;   /* the ACK is of one segment and may have been delayed */
	uint32_t sent_in_flight;   /* bytes sent and not cumulatively acknowledged when that segment was sent, itself included */
};

/* The connection at an ACK, or at another event. Congestion, states and events that follow from an ACK are told before on_ack, and
   with what it delivered: with rtt_ns, acked, acked_cumulative, prior_in_flight, is_ece and is_predicted. */
struct elephan_cc_ack {
	uint64_t now_ns;           /* jiffies of Linux at HZ = 1000 are now_ns / 1000000 */
	int64_t rtt_ns;            /* round-trip time that this ACK measured; negative: none */
	uint64_t min_rtt_ns;       /* smallest round-trip time so far; 0 before the first sample */
	uint64_t srtt_ns;          /* smoothed round-trip time (RFC 6298); 0 before the first sample */
	uint64_t sent_ns;          /* when a segment was last sent */
	uint64_t snd_una;          /* bytes from the start of the connection that are acknowledged, */
	uint64_t snd_nxt;          /* and that were sent */
	uint64_t delivered;        /* segments delivered so far, cumulatively or selectively acknowledged */
	uint64_t delivered_ce;     /* of these, segments whose ACK echoed a mark */
	uint64_t lost;             /* segments found lost so far */
	uint64_t round;            /* round trips completed: one more when data sent after the last increase is acknowledged */
	double growth;             /* segments for which a window may grow by the endpoint's rules (RFC 3465, RFC 7661); 0 in recovery and
	                              while the window is not the limit */
	uint32_t acked;            /* segments that this ACK delivered, cumulatively or selectively; and duplicates that it reports, where
	                              tcp.byte_counting is "delivered" */
	uint32_t acked_cumulative; /* segments that it acknowledged cumulatively */
	uint32_t in_flight;        /* segments in flight after this ACK */
	uint32_t prior_in_flight;  /* and before */
	uint32_t sacked;           /* segments outstanding that are selectively acknowledged */
	uint32_t outstanding_max;  /* largest number of segments outstanding in this round trip */
	uint32_t mss;              /* payload of a full segment, in bytes */
	uint32_t state;            /* enum elephan_cc_state */
	uint32_t is_window_limited; /* the window, not the application, limited the sender in the last round trip */
	uint32_t is_ece;           /* the ACK echoed a mark */
	struct elephan_cc_rate rate; /* with ELEPHAN_CC_NEEDS_RATE */
	uint32_t is_predicted;     /* the ACK acknowledges new data cumulatively, with no SACK blocks, no echoed mark, and the window of the
	                              last one (header prediction) */
};

/* Why the window must be reduced. */
enum elephan_cc_cause {
	ELEPHAN_CC_CAUSE_LOSS = 0,    /* duplicate or selective acknowledgments */
	ELEPHAN_CC_CAUSE_ECN = 1,     /* an echoed mark, or a full queue of the host's own device */
	ELEPHAN_CC_CAUSE_TIMEOUT = 2, /* the retransmission timer */
};

/* What happens beside ACKs and reductions (Linux's tcp_ca_event). */
enum elephan_cc_event {
	ELEPHAN_CC_EVENT_START = 0,    /* data is about to be sent, and nothing is in flight: after an idle time, because all was
	                                 acknowledged or, with tcp.profile = "linux-6", because all is lost (snd_una < snd_nxt); not told
	                                 for the first data */
	ELEPHAN_CC_EVENT_RESTART = 1,  /* as before, and the endpoint has reduced cwnd to a restart window */
	ELEPHAN_CC_EVENT_END_CWR = 2,  /* a fast recovery or the response to a mark has ended: cwnd may be set to ssthresh */
	ELEPHAN_CC_EVENT_TIMEOUT = 3,  /* the retransmission timer ran out; on_congestion follows, unless the loss is covered already */
	ELEPHAN_CC_EVENT_CE = 4,       /* as a receiver: a marked segment arrived after one without a mark */
	ELEPHAN_CC_EVENT_NO_CE = 5,    /* as a receiver: the reverse */
};

struct elephan_cc_parameter {
	const char *name;     /* NULL ends the list */
	const char *meaning;  /* one sentence */
	double value;         /* the default */
	double low, high;     /* the range, both ends included */
};

struct elephan_cc {
	uint32_t abi;         /* ELEPHAN_CC_ABI */
	uint32_t size;        /* sizeof(struct elephan_cc) */
	uint32_t flags;       /* enum elephan_cc_flag */
	uint32_t reserved;
	const char *name;     /* required; letters, digits, '_' and '-' */
	const char *title;    /* as in a list of algorithms; NULL: the name */
	const char *source;   /* publication or file; NULL: none */
	const struct elephan_cc_parameter *parameters; /* NULL: none */

	/* A connection begins: returns its state, or NULL if there is no memory or the algorithm refuses a value. `values` are those of the
	   parameters, in order. Required. */
	void *(*create)(const double *values, uint64_t seed);
	/* A copy of a state, which lives on when the other is destroyed. Required. */
	void *(*clone)(const void *state);
	/* The state is not used again. Required. */
	void (*destroy)(void *state);

	/* The handshake is complete, and the first data is about to be sent. `ack` has the connection's first values. */
	void (*on_start)(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack);
	/* An ACK delivered data. Called in every state. Required. */
	void (*on_ack)(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack);
	/* A congestion event, at most one for each window of data: sets ssthresh. The endpoint then reduces cwnd as its recovery says; with
	   GOVERNS_RECOVERY cwnd is what this function sets. Required. */
	void (*on_congestion)(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack, uint32_t cause);
	/* The state of the sender has become `ack->state`. If it changes for a congestion event, on_congestion was called first. */
	void (*on_state)(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack);
	/* enum elephan_cc_event */
	void (*on_event)(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack, uint32_t event);
	/* The last reduction was not justified: sets cwnd and ssthresh; both are what they are now when it is called, and `before` has those of before
	   the reduction. NULL: the endpoint restores those of before, as its settings say. */
	void (*on_undo)(void *state, struct elephan_cc_window *window, const struct elephan_cc_window *before);
};

#endif
