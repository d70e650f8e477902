"""Scalable TCP, compiled by numba."""

import elephan.cc


@elephan.cc.compiled
class Scalable:
    """Scalable TCP, as an example."""

    source = "Kelly 2003"
    parameters = {"a": elephan.cc.Parameter(0.01, 0, 1, "Increase for each acknowledged segment.")}

    def on_ack(state, window, ack):
        if window.cwnd < window.ssthresh:
            window.cwnd += ack.growth
        else:
            window.cwnd += state.a * ack.growth

    def on_congestion(state, window, ack, cause):
        window.ssthresh = max(window.cwnd * 0.875, 2.0)
