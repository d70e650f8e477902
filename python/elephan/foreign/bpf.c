/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * An algorithm in the form of those in kernel/, compiled for the host, behind the interface elephan-cc.h. It is linked with the
 * algorithm's file and bpf_kernel.c; the compiler is given the file's ALGORITHM. The files of kernel/ are adapted by it, too: there
 * EXPORTED is the name of the table.
 */
#include "elephan.h"
#include "elephan-cc.h"

#include <stdlib.h>
#include <string.h>

/* TCP_INFINITE_SSTHRESH of the kernel. */
#define INFINITE_SSTHRESH 0x7fffffffu
#define MOST_PARAMETERS 64
#ifndef EXPORTED
#define EXPORTED elephan_cc
#endif
#define TEXT(name) TEXT_(name)
#define TEXT_(name) #name

extern struct tcp_congestion_ops REGISTERED;
/* A file need not have parameters. */
extern const volatile struct parameter TABLE[] __attribute__((weak));

struct connection {
	struct tcp_sock tp;
	/* Fractions of segments that were acknowledged and not yet reported: a kernel counts whole segments. */
	double owed;
	/* Growth beyond ssthresh that slow start must leave to congestion avoidance. */
	double beyond;
	/* The state that it was told last. */
	u32 state;
	u64 values[];
};

static struct elephan_cc_parameter parameters[MOST_PARAMETERS + 1];
static size_t size = sizeof(struct connection);

static void *create(const double *values, uint64_t seed)
{
	struct connection *connection = calloc(1, size);

	(void)seed;
	if (!connection)
		return NULL;
	for (int n = 0; parameters[n].name; n++) {
		double fixed = values[n] * (1ull << TABLE[n].bits) + 0.5;

		connection->values[n] = fixed < 0x1p64 ? (u64)fixed : ~0ull;
	}
	connection->tp.is_cwnd_limited = 1;
	return connection;
}

static void *clone(const void *state)
{
	struct connection *connection = malloc(size);

	return connection ? memcpy(connection, state, size) : NULL;
}

static void call(struct connection *connection, void (*operation)(u64 *), u64 second, u64 third)
{
	u64 arguments[3] = { (u64)(size_t)&connection->tp, second, third };

	el_values = connection->values;
	if (operation)
		operation(arguments);
}

static void enter(struct tcp_sock *tp, const struct elephan_cc_window *window, const struct elephan_cc_ack *ack)
{
	tp->snd_cwnd = window->cwnd;
	tp->snd_ssthresh = window->ssthresh < INFINITE_SSTHRESH ? window->ssthresh : INFINITE_SSTHRESH;
	tp->tcp_mstamp = ack->now_ns / 1000;
	tp->srtt_us = ack->srtt_ns / 1000 * 8;
	tp->rtt_min.s[0].v = ack->min_rtt_ns / 1000;
	tp->mss_cache = ack->mss;
	tp->delivered = ack->delivered;
	tp->delivered_ce = ack->delivered_ce;
	tp->max_packets_out = ack->outstanding_max;
	tp->snd_una = ack->snd_una;
	tp->snd_nxt = ack->snd_nxt;
}

/* What the algorithm changed; the endpoint's fractions of segments stay where it changed nothing. */
static void leave(const struct tcp_sock *tp, struct elephan_cc_window *window, u32 cwnd, u32 ssthresh)
{
	if (tp->snd_cwnd != cwnd)
		window->cwnd = max64(tp->snd_cwnd, 1);
	if (tp->snd_ssthresh != ssthresh)
		window->ssthresh = max64(tp->snd_ssthresh, 1);
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

static double most(double a, double b)
{
	return a > b ? a : b;
}

/* Adds what the kernel's algorithm added to its window of whole segments, and no more than the ACK counts for. */
static void grow_by(struct connection *connection, struct elephan_cc_window *window, double grown, double growth)
{
	u32 ssthresh = least(window->ssthresh, INFINITE_SSTHRESH);

	if (window->cwnd < window->ssthresh) {
		/* The kernel's slow start goes on beyond ssthresh by itself: what it adds there counts at the next ACK. */
		double room = window->ssthresh - window->cwnd;

		connection->beyond = most(grown - room, 0);
		grown = least(grown, room);
	} else {
		grown += connection->beyond;
		connection->beyond = 0;
	}
	window->cwnd = most(window->cwnd + least(grown, growth), 1);
	if (connection->tp.snd_ssthresh < ssthresh)
		window->ssthresh = most(window->cwnd, MIN_SSTHRESH);
}

static void tell_state(struct connection *connection, u32 state)
{
	connection->state = state;
	call(connection, REGISTERED.set_state, state, 0);
}

static void on_start(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack)
{
	struct connection *connection = state;

	enter(&connection->tp, window, ack);
	call(connection, REGISTERED.init, 0, 0);
}

static void on_ack(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack)
{
	struct connection *connection = state;
	struct tcp_sock *tp = &connection->tp;
	struct ack_sample sample = {
		.pkts_acked = ack->acked,
		.rtt_us = ack->rtt_ns < 0 ? -1 : ack->rtt_ns / 1000,
		.in_flight = ack->rate.sent_in_flight,
	};
	u32 cwnd, ssthresh, acked;

	enter(tp, window, ack);
	cwnd = tp->snd_cwnd;
	ssthresh = tp->snd_ssthresh;
	if (ack->state != connection->state)
		tell_state(connection, ack->state);
	call(connection, REGISTERED.pkts_acked, (u64)(size_t)&sample, 0);
	connection->owed += ack->growth;
	acked = connection->owed;
	connection->owed -= acked;
	if (acked)
		call(connection, REGISTERED.cong_avoid, 0, acked);
	/* Nothing grows the window by more than slow start, unless it has a rule of its own. */
	if (ack->growth > 0 && tp->snd_cwnd <= (u64)cwnd + acked)
		grow_by(connection, window, (double)tp->snd_cwnd - cwnd, ack->growth);
	else
		leave(tp, window, cwnd, ssthresh);
}

static void on_congestion(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack, uint32_t cause)
{
	static const u32 states[] = { ELEPHAN_CC_RECOVERY, ELEPHAN_CC_CWR, ELEPHAN_CC_LOSS };
	struct connection *connection = state;
	u64 arguments[1] = { (u64)(size_t)&connection->tp };

	enter(&connection->tp, window, ack);
	connection->beyond = 0;
	el_values = connection->values;
	connection->tp.snd_ssthresh = REGISTERED.ssthresh(arguments);
	/* The kernel tells the state again at each event; some algorithms change the threshold for it. */
	tell_state(connection, states[cause]);
	window->ssthresh = max64(connection->tp.snd_ssthresh, 1);
}

static void on_state(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack)
{
	struct connection *connection = state;
	struct tcp_sock *tp = &connection->tp;
	u32 cwnd, ssthresh;

	if (ack->state == connection->state)
		return;
	enter(tp, window, ack);
	cwnd = tp->snd_cwnd;
	ssthresh = tp->snd_ssthresh;
	tell_state(connection, ack->state);
	leave(tp, window, cwnd, ssthresh);
}

__attribute__((visibility("default"))) struct elephan_cc EXPORTED = {
	.abi = ELEPHAN_CC_ABI,
	.size = sizeof(struct elephan_cc),
#ifdef NEEDS_RATE
	.flags = ELEPHAN_CC_NEEDS_RATE,
#endif
	.name = TEXT(ALGORITHM),
	.parameters = parameters,
	.create = create,
	.clone = clone,
	.destroy = free,
	.on_start = on_start,
	.on_ack = on_ack,
	.on_congestion = on_congestion,
	.on_state = on_state,
};

/* What the file declares; the values of its table are in fixed point. */
__attribute__((constructor)) static void read_file(void)
{
	if (REGISTERED.flags & TCP_CONG_NEEDS_ECN)
		EXPORTED.flags |= ELEPHAN_CC_NEEDS_ECN;
	if (!TABLE)
		return;
	for (int n = 0; n < MOST_PARAMETERS && TABLE[n].name[0]; n++) {
		double unit = 1.0 / (1ull << TABLE[n].bits);

		parameters[n] = (struct elephan_cc_parameter){
			.name = (const char *)TABLE[n].name,
			.meaning = "as the file declares it",
			.value = TABLE[n].value * unit,
			.high = 0x1p64 * unit,
		};
		size += sizeof(u64);
	}
}
