/* Scalable TCP (Kelly 2003): the window grows by `a` for each acknowledged segment, and falls to 0.875 of itself at a loss. */
#include <stdlib.h>
#include <string.h>
#include "elephan-cc.h"

struct state {
	double a;
};

static const struct elephan_cc_parameter parameters[] = {
	{ "a", "Increase for each acknowledged segment (Kelly 2003, section 3).", 0.01, 0, 1 },
	{ 0 },
};

static void *create(const double *values, uint64_t seed)
{
	struct state *state = calloc(1, sizeof(*state));

	(void)seed; /* no random numbers */
	if (state)
		state->a = values[0];
	return state;
}

static void *clone(const void *state)
{
	struct state *copy = malloc(sizeof(*copy));

	return copy ? memcpy(copy, state, sizeof(*copy)) : NULL;
}

static void on_ack(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack)
{
	const struct state *own = state;

	if (window->cwnd < window->ssthresh)
		window->cwnd += ack->growth;
	else
		window->cwnd += own->a * ack->growth;
}

static void on_congestion(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack, uint32_t cause)
{
	(void)state, (void)ack, (void)cause;
	window->ssthresh = window->cwnd * 0.875 > 2 ? window->cwnd * 0.875 : 2;
}

const struct elephan_cc elephan_cc = {
	.abi = ELEPHAN_CC_ABI,
	.size = sizeof(struct elephan_cc),
	.name = "scalable",
	.title = "Scalable TCP, as an example",
	.source = "Kelly 2003",
	.parameters = parameters,
	.create = create,
	.clone = clone,
	.destroy = free,
	.on_ack = on_ack,
	.on_congestion = on_congestion,
};
