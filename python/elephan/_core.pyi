"""The simulator, as the extension module gives it. Use `elephan.run` and its neighbours instead."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Self

__version__: str
"The version of the package."
TRANSFER_PORT: int
"The port of a receiver, if none is named."
EVENT_KINDS: list[str]
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

def register_object(name: str, path: PathLike[str]) -> None:
    """Registers the algorithm of a shared object, which has the C interface, under `name`.

    Its code is loaded. Raises `ScenarioError` for another file, and for another version of the interface.
    """

def register_table(name: str, address: int) -> None:
    """Registers the algorithm whose table of functions is at an address of this process under `name`.

    The table must stay. Raises `ScenarioError` where there is no such table.
    """

def register_class(
    name: str,
    class_: type,
    title: str,
    source: str,
    parameters: Sequence[tuple[str, str, float, float, float]],
    interval_s: float | None,
    governs_recovery: bool,
) -> None:
    """Registers a subclass of `elephan.cc.Controller` under `name`.

    `parameters` has of each its name, meaning, default and range.
    """

def add_linux_name(name: str) -> None:
    """Makes known that the running kernel has an algorithm called `name`, with `linux:`, which Elephan does not list."""

def registered(name: str) -> str | None:
    """The description of the algorithm from outside that is registered under `name`, as JSON; None if there is none."""

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
    def estimate(self) -> dict[str, tuple[float, str]]:
        """Upper bounds of what it takes to run it.

        They are `events` of the simulator, `rows` of all tables and `bytes` of memory, each with the key that
        contributes most; of a sweep those of the point that takes most.
        """

    @property
    def plan(self) -> dict[str, Any]:
        """Links, flows and times as engines see them.

        These are the `labels` of flows, and when they start (None if that is drawn); `links` with name, rate, the
        weights of classes, and what they are like before the `changes`, in order of time; the `routes` of data of each
        flow, as numbers of links; the number of the `bottleneck`; the rate of all streams of datagrams that are
        constant; the measuring window, `from_s` to `to_s`; and the longest round-trip time of a flow without queueing.
        An algorithm from outside need not be registered for it.
        """

    @property
    def fluid_plan(self) -> dict[str, Any]:
        """What the fluid model needs: numbers in s, bit/s and packets.

        Raises `ScenarioError` where it has more than one bottleneck, or traffic that is no bulk transfer.
        """

    def point(self, number: int, repeat: int) -> tuple[Scenario, dict[str, Any]]:
        """The scenario of repeat `repeat` of point `number`, and the settings that it stands for.

        Raises `ScenarioError` where there is no such point.
        """

    def canonical(self, number: int, repeat: int) -> str:
        """The scenario of repeat `repeat` of point `number` as JSON with its keys in alphabetical order.

        One scenario has one such text. Raises `ScenarioError` where there is no such point.
        """

def parse_document(text: str, file: str, json: bool = False) -> str:
    """Reads a text (TOML, or JSON where `json`) as a plain document, and returns it as JSON.

    Nothing else is checked. Raises `ScenarioError`, with the name `file`, where it is neither.
    """

def load_scenario(
    text: str,
    file: str,
    overrides: Sequence[tuple[str, str]],
    json: bool = False,
    files: bool = False,
    large: bool = False,
) -> Scenario:
    """Reads a scenario (TOML, or JSON where `json`), with all defaults written out.

    It sets `overrides`, and checks that the scenario works at every point of its sweep, and that no point is beyond
    the limits of events, rows and memory unless it may be `large`. Files that it names are read only where `files`
    allows it. Raises `ScenarioError` with a line for each mistake.
    """

class Cancel:
    """Stops runs that go on in other threads, once for all."""

    def is_set(self) -> bool:
        """Whether they are to stop."""

    def set(self) -> None:
        """Stops them, within milliseconds."""

def run_many(
    scenarios: Sequence[Scenario],
    threads: int = 0,
    progress: Callable[[float], object] | None = None,
    captures: dict[str, str] | None = None,
    cancel: Cancel | None = None,
) -> list[dict[str, Any]]:
    """Runs scenarios on `threads` threads (0: all cores); results in the same order.

    Several runs go on side by side; a single one is divided among the threads. There are no more threads than
    cores. The calling thread calls `progress` every 50 ms with the share that is done, and runs signal handlers.
    What they raise ends the runs at once, and is raised. `captures` gives, for the links that a scenario captures,
    the files to write; it is for a single scenario. `cancel` lets another thread stop the runs, in place of
    `progress`; a single run then goes on in the calling thread. Raises `ScenarioError` where one cannot be run,
    `OSError` where a capture cannot be written.
    """

def run_live(
    scenario: Scenario,
    interval_s: float,
    callback: Callable[[float, dict[str, Any], dict[str, Any]], bool],
    cancel: Cancel | None = None,
    listen: Callable[[], object] | None = None,
) -> dict[str, Any]:
    """Runs a scenario and hands over its samples as they come.

    It calls `callback(time_s, flows, queues)` every `interval_s` of simulated time with those that are new; the run
    pauses until it returns, and ends where it returns false. Nothing is captured.

    The calling thread calls `listen()` every 50 ms of real time; what that raises ends the run at once, and is
    raised. `cancel` lets another thread stop it. Raises `ScenarioError` where the scenario cannot be run.
    """

def kernel_algorithms() -> str:
    """Every algorithm of kernel/, as JSON: name, title, source file, and the name that it registers with the kernel."""

def kernel_sources(guest: bool = False) -> dict[str, str]:
    """The sources of the algorithms, and with `guest` of what is added with them to a guest kernel: name and text of
    each file.
    """

def kernel_values(name: str, settings: str) -> list[int]:
    """The values of an algorithm's table of parameters in fixed point, with these settings (JSON).

    Raises `ScenarioError` for an unknown algorithm or setting.
    """

def linux_unsupported(scenario: Scenario, guest: bool = False) -> list[str]:
    """What a scenario asks for and the running kernel, or a guest kernel (`guest`), cannot do, a line each.

    Raises `ScenarioError` where it cannot be run at all.
    """

def read_captures(paths: Sequence[PathLike[str]]) -> list[dict[str, Any]]:
    """The connections of a capture, or of several captures of the same time, each as a dict of what its packets show.

    `data_*` are columns of the packets with data: `time_ns`, `offset` in the stream, `payload`, `bytes` of the IP
    packet, `again` (0: new, 1: seen before, 2: fills a hole, 3: was acknowledged), `before_ns` (when the same data,
    or the hole, was first seen). `ack_*` are columns of the acknowledgments: `time_ns`, `delivered` bytes,
    `sent_ns` of the last data that it delivers (-1 for none that was sent once), `sent_offset` of its end,
    `flight`, `window` (0 if unknown), `dsack`. `answer_*` are the times, and how long the sender's side took, from
    the timestamps. `from`, `to` are the ends, `mss` and `handshake_ns` are None if they were not captured, and
    `is_cut` tells whether a file ended within a packet. Raises `ScenarioError` for a file that is no capture of
    TCP, and `OSError`.
    """

def measure_host(request: str) -> str:
    """Carries out one measurement of this host (JSON), and returns what was measured (JSON).

    Signal handlers run meanwhile; what they raise ends it. Raises `ScenarioError` for another request, `OSError`
    where the system refuses something. For Linux only.
    """

def run_packetdrill(
    text: str,
    file: str,
    keys: Sequence[tuple[str, str]],
    kernel: bool,
    judge: Callable[[str, dict[str, int]], tuple[str, bool]],
) -> str:
    """The report (JSON) of a script of packetdrill on the simulator's TCP, or the running kernel's (`kernel`).

    `keys` set the simulated stack, after the script's own settings. `judge` gets each piece of the script's code
    and its variables, and returns what is wrong: an empty text for nothing, and whether only a name is missing.
    Raises `ScenarioError` where the script or a key cannot be read, `OSError` where the kernel refuses something.
    """

def run_linux(
    scenario: Scenario,
    algorithms: Sequence[str],
    large_segments: bool = False,
    sender_commands: Sequence[Sequence[str]] | None = None,
    listener_commands: Sequence[Sequence[str]] | None = None,
    progress: Callable[[float], object] | None = None,
) -> dict[str, Any]:
    """Runs a scenario, of which `linux_unsupported` names nothing, on the running kernel.

    `algorithms` are the kernel's names of the congestion control of each flow, and then of each crowd. `progress`
    as in `run_many`. The commands, each a list of words, run meanwhile in the namespaces of the hosts that send and
    that receive. Raises `OSError` where the system refuses.
    """

def hold_links(scenario: Scenario, cancel: Cancel, ready: Callable[[int, int], object]) -> str:
    """Connects two network namespaces by the links of a scenario, without its traffic, until `cancel` is set.

    Calls `ready` with the file descriptors of this process for the near and the far host's namespace. Returns the
    quality of the emulation as JSON, as in a run. Raises `ScenarioError` where the scenario cannot be run,
    `OSError` where the system refuses.
    """

def run_guest(
    scenario: Scenario,
    algorithms: Sequence[str],
    loads: Sequence[tuple[str, str, Sequence[int]]],
    image: str | PathLike[str],
    files: tuple[str | PathLike[str], str | PathLike[str]],
    progress: Callable[[float], object] | None = None,
) -> dict[str, Any]:
    """Runs a scenario on the kernel `image`, which runs as a process.

    `files` are the guest's first program and its links, of this package; `loads` are algorithms with other
    parameters: source file, registered name, values. All else as for `run_linux`; a guest that fails raises
    `OSError`.
    """

def quantity(text: str) -> tuple[float, str] | None:
    """The number that a quantity of a scenario file stands for, and its unit.

    Units are `bit_s`, `s`, `bytes`, `packets`, or `bdp`, a share of the bandwidth-delay product. None where the
    text is no quantity.
    """

def schema() -> str:
    """The JSON Schema of the scenario file, as JSON."""

def one_of(known: Sequence[str], found: str) -> str:
    """What is expected in place of `found`, in words: all `known` names, or those of many that `found` is near to."""

def vocabulary() -> str:
    """Everything that a scenario can name, as JSON: lists of entries by the key that names them.

    These are algorithms, those that Linux has (`linux`), slow starts, recoveries, queue disciplines and kinds of
    traffic. Of an algorithm it also says whose response function it has (`model`), and which file of kernel/ has
    it.
    """

def declared_columns() -> str:
    """Every column of every table of samples, as JSON.

    Each has table, name, title, unit, type, meaning, and whether a page is sent it.
    """

def declared_fields() -> str:
    """Every figure of every part of a summary, as JSON.

    Each has part, name, title, unit, meaning, source, and how tables show it.
    """

def summary_schema() -> str:
    """The JSON Schema of `summary.json`."""

class Model:
    """The steady state of an algorithm.

    `cc` is as in a scenario, in JSON: a name, or a table with `name` and parameters. Windows are in segments, `rtt`
    in s, `loss` is a probability for each packet. Raises `ScenarioError` where the algorithm has no model.
    """

    def __new__(cls, cc: str) -> Model: ...
    def published(self, loss: float, rtt: float) -> float | None:
        """Mean window at a loss rate, in segments, as the source prints it; none where no source does."""

    def window(self, loss: float, rtt: float) -> float:
        """Mean window in segments under one loss in `1/loss` packets."""

    def peak(self, loss: float, rtt: float) -> float:
        """Window in segments at which the sawtooth under one loss in `1/loss` packets loses."""

    def loss(self, window: float, rtt: float) -> float:
        """The loss rate that supports a mean window."""

    def beta(self, window: float) -> float:
        """Fraction of a window that a loss leaves."""

    def increase(self, window: float, rtt: float) -> float:
        """Increase in segments for each round trip at a mean window."""

    def recovery(self, window: float, rtt: float) -> float:
        """Round trips until a flow that lost at `window` is back there."""

    def doubling(self, window: float, rtt: float) -> float:
        """Round trips from `window` to twice that, when capacity has come free."""

    def halving(self, window: float) -> float:
        """Round trips from `window` to half of that under a loss in each round trip."""

    def variation(self, window: float, rtt: float) -> float:
        """Coefficient of variation of the rate under independent losses of small probability."""

    def sawtooth_variation(self, window: float) -> float:
        """Coefficient of variation of the window over one periodic sawtooth."""

    def rtt_unfairness(self, loss: float, rtt: float) -> tuple[float, float, float, float]:
        """Exponents of the response function and of the ratio of rates by round-trip time.

        They are `d` and `e` of `w = c rtt^e / loss^d`, and the exponents with independent and with synchronised losses.
        """

    def layer(self, k: int) -> tuple[float, float, float, float, float] | None:
        """Layered TCP's layer `k`; none for other algorithms.

        It has its step and its first window in segments, how many times faster than Standard TCP it claims bandwidth
        and recovers, and the loss rate that supports it.
        """

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
) -> list[tuple[list[float], list[float], list[float], float, float, float]]:
    """Integrates windows and queue as differential equations, sampled every `interval` s.

    `rate` is in packets/s and `buffer` in packets; `queue` is `droptail`, `red` or `power`. `classes` are `(cc as
    JSON, flows, rtt, start, stop, window, ssthresh)` in s and segments; `red` is `(min, max, max_p, weight, gentle,
    wait)` with thresholds in packets. `progress` is called every 50 ms with the share that is done.

    For each sample the windows (segments), round-trip times (s) and losses so far of all classes; the queue
    (packets), what is offered (packets/s) and the probability of a loss. Raises `ScenarioError` for another queue,
    or an algorithm without a model.
    """

def empty_summary() -> str:
    """A summary in which nothing has happened, with one flow and one link, as JSON: what engines outside Rust fill in."""

def independent_window(cc: str, loss: float, rtt: float) -> float | None:
    """Mean window in segments of an algorithm under independent losses.

    `cc` is in JSON, `rtt` in s. None for FAST, which lives by its queue. Raises `ScenarioError` where the algorithm
    has no model.
    """

def pftk_bit_s(loss: float, rtt: float, rto: float, segment_bytes: float, per_ack: float) -> float:
    """Throughput of Standard TCP with timeouts, in bit/s (Li 2006, equation 5.7).

    `rtt` and the retransmission timeout `rto` are in s; `per_ack` is the segments that an ACK acknowledges.
    """

def utilisation_of(beta: float, gamma: float) -> float:
    """Utilisation by one flow (Li 2006, equation 5.6).

    It keeps the fraction `beta` at a loss; the buffer is `gamma` bandwidth-delay products.
    """

def scalable_stability(
    a: float, b: float, flows: float, rtt: float, rate: float, buffer: float, model: str
) -> tuple[float, float, float, bool]:
    """Kelly's condition for the stability of Scalable TCP at a link: load, loss, limit of `a`, and whether it holds.

    `rtt` is in s, `rate` in packets/s, `buffer` in packets; `model` is `power`, `mm1b` or `excess`. Raises
    `ScenarioError` for another.
    """

def tekala_window(
    times: Sequence[float], alpha: float, beta: float, mu: float, rtt: float, buffer: float, ssthresh: float
) -> list[float]:
    """Scalable TCP's window in segments at each of `times`, alone on a link.

    By Tekala and Szabo 2006, equations 6 to 12. Times and `rtt` are in s, `mu` in packets/s, `buffer` in packets,
    `ssthresh` in segments.
    """

def tekala_random_rate(alpha: float, beta: float, q: float, rtt: float, delay: float) -> tuple[float, float]:
    """Scalable TCP's throughput under random loss `q`, in packets/s.

    The first is by Tekala and Szabo 2006, equation 24, the second with independent losses. `rtt` and the queueing
    `delay` are in s.
    """

def seconds(text: str) -> float:
    """Seconds in a time such as "82 ms".

    Raises `ScenarioError` where the text is no time.
    """

def bits_per_second(text: str) -> float:
    """Bits per second in a rate such as "250 Mbit/s".

    Raises `ScenarioError` where the text is no rate.
    """

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
) -> dict[str, Any]:
    """Sends a file (`path`; `-` is standard input), or `memory` bytes, to the receiver of `token`.

    `cc` is the kernel's name of a congestion control, `pace` the highest rate of each stream in bit/s. The calling
    thread calls `progress` every 50 ms, with the bytes of all (None until the transfer is open, and of standard
    input), those that are stored, the rate in bit/s, and what limits it (or None), and runs signal handlers.
    Returns the tables of the streams as an engine does, and `done` (JSON): what was done. Raises `ScenarioError`
    for what does not work as it was asked for, `OSError` for what ended the transfer.
    """

def transfer_receive(
    at: str,
    folder: str | PathLike[str] | None,
    started: Callable[[int, str], object],
    tell: Callable[[list[str]], object],
    *,
    once: bool = False,
    patience_s: float = 20.0,
) -> None:
    """Receives transfers at an address (`host:port`), into `folder` (`-` is standard output), or memory.

    Calls `started` with the port and the token, and then `tell` every 50 ms, with what has happened since (JSON
    each). Goes on until one of these raises; with `once`, and into standard output, until a transfer has come to
    its end. Raises `ScenarioError` for an address or a folder that cannot be used, `OSError` if what was sent into
    standard output ended early.
    """

def watch_programs(interval_s: float, start: Callable[[], object], is_over: Callable[[], bool]) -> dict[str, Any]:
    """Samples the TCP connections of the programs that this process starts meanwhile, and of those that they start.

    Calls `start`, and then `is_over` every 50 ms until it is true; samples are kept every `interval_s` seconds.
    Returns `tables` as an engine does, or None without a connection; `flows`: of each its congestion control by the
    kernel's name, start in s, and bytes received; the number of `connections`, of those `without_info`
    (`TCP_INFO`), which are in no table, and of `foreign` processes, whose sockets this user may not see.

    Raises `OSError` where the kernel has no sock_diag, and what the functions raise.
    """

PROBE_PORT: int
PROBE_HEADER: int

class ProbeClient:
    """A session with `elephan probe server`: it asks for one test after the other, and keeps to what was agreed on.

    `host` is an IP address. The session costs at most `max_bytes` of IP packets in both directions together, lasts
    at most `max_seconds`, and sends at no more than `max_rate` (bit/s). Raises `ScenarioError` for a wrong token,
    `PermissionError` where the server refuses, `OSError` for all else.
    """

    def __new__(
        cls, host: str, port: int, token: str, max_bytes: int, max_seconds: float, max_rate: int | None = None
    ) -> ProbeClient: ...
    def limits(self) -> tuple[int, float, int | None]:
        """What was agreed on: bytes, seconds, and rate in bit/s (none: no limit)."""

    def host(self) -> tuple[str, str, list[str]]:
        """The server's host: name, kernel, and the congestion control that it permits."""

    def is_v6(self) -> bool:
        """Whether packets have the headers of IPv6."""

    def spent(self) -> int:
        """Bytes of IP packets so far, in both directions together, at most."""

    def elapsed(self) -> float:
        """Seconds since the session began."""

    def stream(
        self, sizes: Sequence[int], due_ns: Sequence[int], echo: bool = False, linger: float = 0.2
    ) -> dict[str, Any]:
        """Sends datagrams on a schedule, which the server perhaps echoes.

        They have these sizes (bytes of IP packets), and each is due at an offset from the first (ns). Waits up to
        `linger` seconds for the last. Returns a dict: `sent_ns` for each; `arrived`, `arrived_ns`, `echoed_ns`:
        sequence numbers and times at the server; `back`, `back_ns`: those of echoes here; `stamped`: whether the kernel
        gave the times of departure; `overflowed`, `overflowed_back`: datagrams that the sockets dropped; `bytes` of IP
        packets. Times are ns since 1970 on the clock of their host; zero means that it did not happen.
        """

    def tcp(self, cc: str, down: bool, seconds: float, max_bytes: int) -> dict[str, Any]:
        """Sends by TCP, or receives if `down`, for so many seconds, and at most so many bytes of IP packets.

        Returns a dict: `tables`, the tables of a run from the sender's `TCP_INFO` each 100 ms (none if it was too short
        for any), as `transfer_send` returns them; `received_ns` and `received`, what the receiver had received; `bytes`
        of IP packets.
        """

    def finish(self) -> None:
        """Ends the session."""

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
    def sleep(self, seconds: float) -> None:
        """Lets virtual time pass."""

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
    def token(self) -> str:
        """What a client needs to be admitted."""

    def port(self) -> int:
        """The port, of TCP and UDP."""

    def run(self, tell: Callable[[str], object]) -> None:
        """Serves until Ctrl-C.

        `tell` gets a line for each thing that happens.
        """
