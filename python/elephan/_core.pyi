"""The simulator, as the extension module gives it. Use `elephan.run` and its neighbours instead."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Self

__version__: str
"The version of the package."
TRANSFER_PORT: int
"The port of a receiver, if none is named."
EVENT_KINDS: list[str]
VARIABLES: list[str]
VARIABLE_VALUES: list[str]
"The kinds of events of a run, in the order of the numbers in `events.parquet`."

class ScenarioError(ValueError):
    """A scenario that cannot be run; the message has a line for each mistake."""

class AlgorithmError(ScenarioError):
    """An algorithm from outside failed during a run; the message has the flow, its algorithm and the simulated time.

    Its cause is the exception of an algorithm in Python.
    """

FOREIGN_KINDS: list[str]
"What the names of algorithms from outside begin with."

class Report:
    """What happened to a connection since the last report, and its state."""

    time_s: float
    "Simulated time, in seconds."
    interval_s: float
    "Time since the last report, in seconds."
    cwnd_segments: float
    "Congestion window, in segments."
    ssthresh_segments: float
    "Slow-start threshold, in segments; infinite before the first loss."
    pacing_rate_bit_s: float
    "Rate at which payload is sent, in bit/s; zero: as `tcp.pacing` says."
    in_flight_segments: int
    "Segments in flight."
    delivered_segments: int
    "Segments delivered since the last report."
    lost_segments: int
    "Segments found lost since the last report."
    marked_segments: int
    "Segments whose ACK echoed a congestion mark since the last report."
    delivery_rate_bit_s: float
    "Rate at which payload was delivered since the last report, in bit/s."
    rtt_s: float | None
    "Mean of the round-trip times that were measured since the last report, in seconds; None if there is none."
    rtt_max_s: float | None
    "Largest of these, in seconds."
    rtt_min_s: float | None
    "Smallest of these, in seconds."
    min_rtt_s: float
    "Smallest round-trip time of the connection, in seconds."
    srtt_s: float
    "Smoothed round-trip time (RFC 6298), in seconds."
    round: int
    "Round trips completed."
    mss_bytes: int
    "Payload of a full segment, in bytes."
    state: str
    "State of the sender, as Linux names it: `open`, `disorder`, `cwr`, `recovery` or `loss`."
    is_window_limited: bool
    "Whether the window, not the application, limited the sender in the last round trip."

class Loss:
    """A congestion event: at most one for each window of data."""

    time_s: float
    "Simulated time, in seconds."
    cause: str
    "How it was detected: `loss` (duplicate or selective acknowledgments), `mark` (ECN) or `timeout`."
    cwnd_segments: float
    "Congestion window, in segments."
    ssthresh_segments: float
    "Slow-start threshold, in segments; infinite before the first loss."
    in_flight_segments: int
    "Segments in flight."
    min_rtt_s: float
    "Smallest round-trip time of the connection, in seconds."
    srtt_s: float
    "Smoothed round-trip time (RFC 6298), in seconds."

class Decision:
    """What a controller decides; what it leaves out stays as it is."""

    cwnd_segments: float | None
    "Congestion window, in segments: 1 to 2^31."
    ssthresh_segments: float | None
    "Slow-start threshold, in segments: below it the window grows by slow start between two reports."
    pacing_rate_bit_s: float | None
    "Rate at which payload is sent, in bit/s; zero: as `tcp.pacing` says."

    def __new__(
        cls,
        *,
        cwnd_segments: float | None = None,
        ssthresh_segments: float | None = None,
        pacing_rate_bit_s: float | None = None,
    ) -> Decision: ...

def register_object(name: str, path: PathLike[str]) -> None: ...
def register_table(name: str, address: int) -> None: ...
def register_class(
    name: str,
    class_: type,
    title: str,
    source: str,
    parameters: Sequence[tuple[str, str, float, float, float]],
    interval_s: float | None,
    governs_recovery: bool,
) -> None: ...
def add_linux_name(name: str) -> None: ...
def registered(name: str) -> str | None: ...

class Scenario:
    """A scenario: a document of the form of its file, its JSON, or another scenario.

    What needs more than the document raises `ScenarioError` where it cannot be read or run. So a stored result can
    be shown where its scenario cannot be run.
    """

    document: dict[str, Any]
    "In the form of its file."
    toml: str
    "As the text of a scenario file, in TOML."
    shown: Scenario
    "With every key of its stack, those that its profile sets included."
    trace_interval: str
    "Sampling interval of flows and queues: `trace.interval`, or its default, which depends on the number of flows."
    congestion_controls: list[tuple[str, str]]
    "Name and settings (JSON) of the congestion control of each flow, and then of each crowd."
    points: int
    "How many points its sweep has, repeats not counted; without a sweep one, itself."
    repeats: int
    "With how many seeds each point is to be run."

    def __new__(cls, document: Mapping[str, Any] | str | Scenario) -> Self: ...
    @property
    def estimate(self) -> dict[str, tuple[float, str]]: ...
    @property
    def plan(self) -> dict[str, Any]: ...
    @property
    def fluid_plan(self) -> dict[str, Any]: ...
    def point(self, number: int, repeat: int) -> tuple[Scenario, dict[str, Any]]: ...
    def canonical(self, number: int, repeat: int) -> str: ...

def parse_document(text: str, file: str, json: bool = False) -> str: ...
def load_scenario(
    text: str,
    file: str,
    overrides: Sequence[tuple[str, str]],
    json: bool = False,
    files: bool = False,
    large: bool = False,
) -> Scenario: ...

class Cancel:
    """Stops runs that go on in other threads, once for all."""

    def is_set(self) -> bool: ...
    def set(self) -> None: ...

def run_many(
    scenarios: Sequence[Scenario],
    threads: int = 0,
    progress: Callable[[float], object] | None = None,
    captures: dict[str, str] | None = None,
    cancel: Cancel | None = None,
) -> list[dict[str, Any]]: ...
def run_live(
    scenario: Scenario,
    interval_s: float,
    callback: Callable[[float, dict[str, Any], dict[str, Any]], bool],
    cancel: Cancel | None = None,
    listen: Callable[[], object] | None = None,
) -> dict[str, Any]: ...
def kernel_algorithms() -> str: ...
def kernel_sources(guest: bool = False) -> dict[str, str]: ...
def kernel_values(name: str, settings: str) -> list[int]: ...
def linux_unsupported(scenario: Scenario, guest: bool = False) -> list[str]: ...
def read_captures(paths: Sequence[PathLike[str]]) -> list[dict[str, Any]]: ...
def measure_host(request: str) -> str: ...
def run_packetdrill(
    text: str,
    file: str,
    keys: Sequence[tuple[str, str]],
    guest: tuple[PathLike[str], PathLike[str], PathLike[str]] | None,
    judge: Callable[[str, dict[str, int]], tuple[str, bool]],
) -> str: ...
def run_linux(
    scenario: Scenario,
    algorithms: Sequence[str],
    sender_commands: Sequence[Sequence[str]] | None = None,
    listener_commands: Sequence[Sequence[str]] | None = None,
    progress: Callable[[float], object] | None = None,
) -> dict[str, Any]: ...
def hold_links(scenario: Scenario, cancel: Cancel, ready: Callable[[int, int], object]) -> str: ...
def run_guest(
    scenario: Scenario,
    algorithms: Sequence[str],
    loads: Sequence[tuple[str, str, Sequence[int]]],
    image: str | PathLike[str],
    files: tuple[str | PathLike[str], str | PathLike[str]],
    progress: Callable[[float], object] | None = None,
) -> dict[str, Any]: ...
def quantity(text: str) -> tuple[float, str] | None: ...
def schema() -> str: ...
def one_of(known: Sequence[str], found: str) -> str: ...
def vocabulary() -> str: ...
def declared_columns() -> str: ...
def declared_fields() -> str: ...
def summary_schema() -> str: ...

class Model:
    """The steady state of an algorithm.

    `cc` is as in a scenario, in JSON: a name, or a table with `name` and parameters. Windows are in segments, `rtt`
    in s, `loss` is a probability for each packet. Raises `ScenarioError` where the algorithm has no model.
    """

    def __new__(cls, cc: str) -> Model: ...
    def published(self, loss: float, rtt: float) -> float | None: ...
    def window(self, loss: float, rtt: float) -> float: ...
    def peak(self, loss: float, rtt: float) -> float: ...
    def loss(self, window: float, rtt: float) -> float: ...
    def beta(self, window: float) -> float: ...
    def increase(self, window: float, rtt: float) -> float: ...
    def recovery(self, window: float, rtt: float) -> float: ...
    def doubling(self, window: float, rtt: float) -> float: ...
    def halving(self, window: float) -> float: ...
    def variation(self, window: float, rtt: float) -> float: ...
    def sawtooth_variation(self, window: float) -> float: ...
    def rtt_unfairness(self, loss: float, rtt: float) -> tuple[float, float, float, float]: ...
    def layer(self, k: int) -> tuple[float, float, float, float, float] | None: ...

def fluid(
    rate: float,
    buffer: float,
    queue: str,
    classes: Sequence[tuple[str, float, float, float, float | None, float, float]],
    duration: float,
    interval: float,
    random_loss: float = 0.0,
    red: tuple[float, float, float, float, bool, bool] | None = None,
    progress: Callable[[float], object] | None = None,
) -> list[tuple[list[float], list[float], list[float], float, float, float]]: ...
def empty_summary() -> str: ...
def independent_window(cc: str, loss: float, rtt: float) -> float | None: ...
def rounds(
    rate: float,
    rtt: float,
    buffer: float,
    flows: Sequence[tuple[str, str, int]],
    packets: float,
    most: float,
    *,
    loss: float = 0.0,
    fair: bool = False,
    seed: int = 1,
) -> tuple[float | None, float, list[list[float]]]: ...
def pftk_bit_s(loss: float, rtt: float, rto: float, segment_bytes: float, per_ack: float) -> float: ...
def utilisation_of(beta: float, gamma: float) -> float: ...
def scalable_stability(
    a: float, b: float, flows: float, rtt: float, rate: float, buffer: float, model: str
) -> tuple[float, float, float, bool]: ...
def tekala_window(
    times: Sequence[float], alpha: float, beta: float, mu: float, rtt: float, buffer: float, ssthresh: float
) -> list[float]: ...
def tekala_random_rate(alpha: float, beta: float, q: float, rtt: float, delay: float) -> tuple[float, float]: ...
def seconds(text: str) -> float: ...
def bits_per_second(text: str) -> float: ...
def transfer_send(
    host: str,
    port: int,
    token: str,
    *,
    path: str | PathLike[str] | None = None,
    memory: int | None = None,
    streams: int = 4,
    plain: bool = False,
    force: bool = False,
    cc: str | None = None,
    pace: float | None = None,
    patience_s: float = 20.0,
    progress: Callable[[int | None, int, float, str | None], object] | None = None,
) -> dict[str, Any]: ...
def transfer_receive(
    at: str,
    folder: str | PathLike[str] | None,
    started: Callable[[int, str], object],
    tell: Callable[[list[str]], object],
    *,
    once: bool = False,
    patience_s: float = 20.0,
) -> None: ...
def watch_programs(interval_s: float, start: Callable[[], object], is_over: Callable[[], bool]) -> dict[str, Any]: ...

PROBE_PORT: int
PROBE_HEADER: int

class ProbeClient:
    """A session with `elephan path probe server`: it asks for tests in turn, and keeps to what was agreed on.

    `host` is an IP address. The session costs at most `max_bytes` of IP packets in both directions together, lasts
    at most `max_seconds`, and sends at no more than `max_rate` (bit/s). Raises `ScenarioError` for a wrong token,
    `PermissionError` where the server refuses, `OSError` for all else.
    """

    def __new__(
        cls, host: str, port: int, token: str, max_bytes: int, max_seconds: float, max_rate: int | None = None
    ) -> ProbeClient: ...
    def limits(self) -> tuple[int, float, int | None]: ...
    def host(self) -> tuple[str, str, list[str]]: ...
    def is_v6(self) -> bool: ...
    def spent(self) -> int: ...
    def elapsed(self) -> float: ...
    def stream(
        self, sizes: Sequence[int], due_ns: Sequence[int], echo: bool = False, linger: float = 0.2
    ) -> dict[str, Any]: ...
    def tcp(self, cc: str, down: bool, seconds: float, max_bytes: int) -> dict[str, Any]: ...
    def finish(self) -> None: ...

class VirtualProbe(ProbeClient):
    """A session in virtual time, over the links of a scenario.

    There is no TCP in it.

    Nothing waits, and the seed of the scenario decides all that is random. `host_rate` (bit/s) is that at which the
    near host sends, and `mtu` the longest packet that its device takes, in bytes; longer ones than `path_mtu`
    vanish on the path. The near host stands still at each of `stalls`: since the beginning, and for how long (s).
    The clock of the far host gains `drift_ppm` on its own. Raises as `ProbeClient`.
    """

    def __new__(
        cls,
        scenario: Scenario,
        max_bytes: int,
        max_seconds: float,
        max_rate: int | None = None,
        *,
        host_rate: int | None = None,
        mtu: int = 1500,
        path_mtu: int | None = None,
        stalls: Sequence[tuple[float, float]] = (),
        drift_ppm: int = 0,
    ) -> VirtualProbe: ...
    def sleep(self, seconds: float) -> None: ...

class ProbeServer:
    """A server that clients measure the path to; `bind` is an IP address (none: all addresses), and port 0 any port.

    A session costs at most `max_bytes` and `max_seconds`, and sends at most at `max_rate` (bit/s); `clients` may
    have one at a time. Raises `OSError` if it cannot listen.
    """

    def __new__(
        cls,
        bind: str | None,
        port: int,
        max_bytes: int,
        max_seconds: float,
        max_rate: int | None = None,
        clients: int = 1,
    ) -> ProbeServer: ...
    def token(self) -> str: ...
    def port(self) -> int: ...
    def run(self, tell: Callable[[str], object]) -> None: ...
