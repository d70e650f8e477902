/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * An algorithm in the form of those in kernel/, compiled for the host, behind the interface elephan-cc.h. It is linked with the
 * algorithm's file; the compiler is given the file's ALGORITHM.
 */
#include "elephan.h"
#include "elephan-cc.h"

#include <stdlib.h>
#include <string.h>

/* TCP_INFINITE_SSTHRESH of the kernel. */
#define INFINITE_SSTHRESH 0x7fffffffu
#define MOST_PARAMETERS 64
#define TEXT(name) TEXT_(name)
#define TEXT_(name) #name

extern struct tcp_congestion_ops REGISTERED;
/* A file need not have parameters. */
extern const volatile struct parameter TABLE[] __attribute__((weak));

_Thread_local const u64 *el_values;

/* As tcp_slow_start() in net/ipv4/tcp_cong.c; the host has no clamp. */
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 cwnd = min64((u64)tp->snd_cwnd + acked, tp->snd_ssthresh);

	acked -= cwnd - tp->snd_cwnd;
	tp->snd_cwnd = cwnd;
	return acked;
}

/* As tcp_reno_undo_cwnd(); the endpoint restores the window by itself. */
u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

struct connection {
	struct tcp_sock tp;
	/* Fractions of segments that were acknowledged and not yet reported: a kernel counts whole segments. */
	double owed;
	u64 values[MOST_PARAMETERS];
};

static struct elephan_cc_parameter parameters[MOST_PARAMETERS + 1];

/* The values of a table are in fixed point. */
__attribute__((constructor)) static void read_table(void)
{
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
	}
}

static void call(struct connection *connection, void (*operation)(u64 *), u64 second, u64 third)
{
	u64 arguments[3] = { (u64)(size_t)&connection->tp, second, third };

	el_values = connection->values;
	if (operation)
		operation(arguments);
}

static void *create(const double *values, uint64_t seed)
{
	struct connection *connection = calloc(1, sizeof(*connection));

	(void)seed;
	if (!connection)
		return NULL;
	for (int n = 0; parameters[n].name; n++) {
		double fixed = values[n] * (1ull << TABLE[n].bits) + 0.5;

		connection->values[n] = fixed < 0x1p64 ? (u64)fixed : ~0ull;
	}
	connection->tp.snd_nxt = 1;
	connection->tp.is_cwnd_limited = 1;
	return connection;
}

static void *clone(const void *state)
{
	struct connection *connection = malloc(sizeof(*connection));

	return connection ? memcpy(connection, state, sizeof(*connection)) : NULL;
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
	call(connection, REGISTERED.pkts_acked, (u64)(size_t)&sample, 0);
	connection->owed += ack->growth;
	acked = connection->owed;
	connection->owed -= acked;
	if (acked)
		call(connection, REGISTERED.cong_avoid, 0, acked);
	leave(tp, window, cwnd, ssthresh);
}

static void on_congestion(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack, uint32_t cause)
{
	struct connection *connection = state;
	u64 arguments[1] = { (u64)(size_t)&connection->tp };

	(void)cause;
	enter(&connection->tp, window, ack);
	el_values = connection->values;
	window->ssthresh = max64(REGISTERED.ssthresh(arguments), 1);
}

static void on_state(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack)
{
	struct connection *connection = state;
	struct tcp_sock *tp = &connection->tp;
	u32 cwnd, ssthresh;

	enter(tp, window, ack);
	cwnd = tp->snd_cwnd;
	ssthresh = tp->snd_ssthresh;
	call(connection, REGISTERED.set_state, ack->state, 0);
	leave(tp, window, cwnd, ssthresh);
}

__attribute__((visibility("default"))) const struct elephan_cc elephan_cc = {
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
