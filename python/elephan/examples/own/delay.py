"""A window that keeps a short queue, decided once a round trip."""

from elephan.cc import Controller, Decision, Parameter


class Delay(Controller):
    """Adds a few segments in a round trip while the queue is short, and removes as many while it is long."""

    parameters = {
        "target_ms": Parameter(5, 0.1, 1000, "Queueing delay that is kept, in ms."),
        "step": Parameter(2, 0.1, 100, "Change of the window in a round trip, in segments."),
    }

    def __init__(self, target_ms, step):
        self.target_s = target_ms / 1000
        self.step = step

    def on_report(self, report):
        if report.rtt_min_s is None:
            return None
        is_short = report.rtt_min_s - report.min_rtt_s < self.target_s
        if report.cwnd_segments < report.ssthresh_segments:
            # Slow start goes on between the reports, until the queue is there.
            return None if is_short else Decision(ssthresh_segments=report.cwnd_segments)
        change = self.step if is_short else -self.step
        return Decision(cwnd_segments=max(report.cwnd_segments + change, 2))
