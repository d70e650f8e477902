/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Scalable TCP (Kelly 2003) as an object with the C interface: each ACK adds a hundredth of a segment for each that it
   acknowledges, and a loss removes an eighth of the window. */
#include "elephan-cc.h"

#include <stdlib.h>

/* Below this window it is Standard TCP. */
#define LOW_WINDOW 16

struct state {
	double a, b;
};

static void *create(const double *values, uint64_t seed)
{
	struct state *state = malloc(sizeof(*state));

	(void)seed;
	if (state)
		*state = (struct state){ .a = values[0], .b = values[1] };
	return state;
}

static void *clone(const void *from)
{
	struct state *state = malloc(sizeof(*state));

	if (state)
		*state = *(const struct state *)from;
	return state;
}

static void on_ack(void *private, struct elephan_cc_window *window, const struct elephan_cc_ack *ack)
{
	const struct state *state = private;

	if (window->cwnd < window->ssthresh) {
		window->cwnd += ack->growth;
		if (window->cwnd > window->ssthresh)
			window->cwnd = window->ssthresh;
	} else {
		window->cwnd += ack->growth * (window->cwnd <= LOW_WINDOW ? 1 / window->cwnd : state->a);
	}
}

static void on_congestion(void *private, struct elephan_cc_window *window, const struct elephan_cc_ack *ack, uint32_t cause)
{
	const struct state *state = private;

	(void)ack;
	(void)cause;
	window->ssthresh = window->cwnd * (window->cwnd <= LOW_WINDOW ? 0.5 : 1 - state->b);
}

static const struct elephan_cc_parameter parameters[] = {
	{ "a", "Growth for each segment that is acknowledged, in segments.", 0.01, 0, 1 },
	{ "b", "Share of the window that a loss removes.", 0.125, 0, 1 },
	{ 0 },
};

const struct elephan_cc elephan_cc = {
	.abi = ELEPHAN_CC_ABI,
	.size = sizeof(struct elephan_cc),
	.name = "scalable",
	.title = "Scalable TCP, as an object in C",
	.source = "Kelly 2003",
	.parameters = parameters,
	.create = create,
	.clone = clone,
	.destroy = free,
	.on_ack = on_ack,
	.on_congestion = on_congestion,
};
