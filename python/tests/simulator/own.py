"""Algorithms of a user's, in C and in Python, and a path for them."""

import elephan

# Scalable TCP.
MINE = """
#include <stdlib.h>
#include <string.h>
#include "elephan-cc.h"
static const struct elephan_cc_parameter parameters[] = { { "a", "Increase for each segment.", 0.01, 0, 1 }, { 0 } };
static void *create(const double *values, uint64_t seed)
{
	double *a = malloc(sizeof(*a));
	*a = values[0] + 0 * seed;
	return a;
}
static void *clone(const void *state) { return memcpy(malloc(sizeof(double)), state, sizeof(double)); }
static void on_ack(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack)
{
	window->cwnd += window->cwnd < window->ssthresh ? ack->growth : *(double *)state * ack->growth;
}
static void on_congestion(void *s, struct elephan_cc_window *window, const struct elephan_cc_ack *ack, uint32_t cause)
{
	window->ssthresh = window->cwnd * 0.875 > 2 ? window->cwnd * 0.875 : 2;
}
const struct elephan_cc elephan_cc = {
	.abi = ELEPHAN_CC_ABI, .size = sizeof(struct elephan_cc), .name = "mine", .title = "Mine", .parameters = parameters,
	.create = create, .clone = clone, .destroy = free, .on_ack = on_ack, .on_congestion = on_congestion,
};
"""
CLASSES = '''
from elephan.cc import Controller, Decision, Parameter

class Aimd(Controller):
    """Additive increase."""

    parameters = {"gain": Parameter(1, 0.1, 100, "Segments in a round trip.")}

    def __init__(self, gain):
        self.gain = gain

    def on_report(self, report):
        if report.cwnd_segments < report.ssthresh_segments:
            return None
        return Decision(cwnd_segments=report.cwnd_segments + self.gain)

class Falls(Controller):
    def on_report(self, report):
        return 1 / 0 if report.time_s > 2 else None

class Answers(Controller):
    def on_report(self, report):
        return 7

class Wide(Controller):
    def on_loss(self, event):
        return Decision(cwnd_segments=float("nan"))

    def on_report(self, report):
        return None
'''


def scenario(*cc: object, duration: str = "10 s", **keys: object) -> elephan.Scenario:
    """A flow of each algorithm on a path that holds some 70 packets."""
    path = {"rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "50% bdp"}
    return elephan.dumbbell(**path, flows=[elephan.flow(one) for one in cc], duration=duration, **keys)
