"""A scenario as a script of ns-2: what can be expressed, and how."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elephan import _core
from elephan.api.scenario import Scenario
from elephan.base.text import short

# ns-2's own agents and their receivers, by the recovery of losses.
AGENTS = {
    "tahoe": ("TCP", "TCPSink"),
    "reno": ("TCP/Reno", "TCPSink"),
    "newreno": ("TCP/Newreno", "TCPSink"),
    "sack": ("TCP/Sack1", "TCPSink/Sack1"),
}
STANDARD = tuple(AGENTS)
# Names of Linux's algorithms in `Agent/TCP/Linux`.
LINUX = {
    **dict.fromkeys(STANDARD, "reno"),
    **{"hstcp": "highspeed", "scalable": "scalable", "htcp": "htcp", "bic": "bic", "cubic": "cubic"},
}
# Algorithms that ns-2's own agents have.
OWN = (*STANDARD, "hstcp", "scalable")
# Parameters that can be set, of the published form. Other parameters need their default.
PARAMETERS = {
    **dict.fromkeys(STANDARD, ("a", "beta")),
    "hstcp": ("response", "w_low", "w_high", "p_high", "b_high"),
    "scalable": ("a", "b", "lwnd", "rounding"),
    "htcp": ("rtt_scaling", "delta_b"),
    "bic": ("s_max", "low_window", "fast_convergence"),
    "cubic": (),
}
# What can be expressed, by table. Other keys have to be unset.
TABLES = ("name", "engine", "duration", "seed", "path", "tcp", "flow", "measure", "trace")
PATH = ("rate", "rtt", "buffer", "queue", "loss", "access_rate", "reverse")
FLOW = ("cc", "slow_start", "start", "stop", "count", "label", "rtt", "tcp", "dscp")
STACK = (
    "packet", "recovery", "byte_counting", "delayed_ack", "initial_window", "initial_ssthresh", "rto_min", "timestamps",
    "limited_transmit", "burst_limit", "receive_buffer",
)  # fmt: skip
# What a table of delayed ACKs leaves out.
DELAYED_ACK = {"segments": 2, "timeout": "200 ms"}
# RED: our parameter, ns-2's variable.
RED = {"min_th": "thresh_", "max_th": "maxthresh_", "w_q": "q_weight_"}
RED |= {key: f"{key}_" for key in ("mean_pktsize", "wait", "gentle", "alpha", "beta", "top", "bottom")}
# A rate that is no limit, for links that only delay, in bit/s; a window and a queue that are none, in packets.
UNLIMITED_BIT_S, UNLIMITED = 1e13, 1_000_000
# The seeds of ns-2's generator are 1 to this number; 0 would draw one from the clock.
SEEDS = 2**31 - 2
# What every script begins with.
PROCEDURES = Path(__file__).with_name("procedures.tcl")


@dataclass(frozen=True)
class Flow:
    """A flow of a scenario, in numbers."""

    label: str
    cc: Mapping[str, Any]
    tcp: Mapping[str, Any]
    slow_start: Mapping[str, Any]
    rtt_s: float
    start_s: float
    stop_s: float | None
    initial_window: float

    @property
    def linux(self) -> bool:
        """Whether `Agent/TCP/Linux` stands for it."""
        return self.cc["name"] not in OWN or self.cc.get("form") == "linux"

    @property
    def acked_together(self) -> int:
        """How many segments the receiver acknowledges with one ACK."""
        return int(self.tcp["delayed_ack"]["segments"])

    @property
    def counted(self) -> int:
        """How many segments an ACK counts for."""
        return 1 if self.tcp["byte_counting"] == "per_ack" else self.acked_together

    @property
    def mss(self) -> int:
        """Payload of a segment, in bytes."""
        return round(_number(self.tcp["packet"])) - 40 - 12 * bool(self.tcp["timestamps"])


def unsupported(scenario: Scenario) -> list[str]:
    """What a scenario asks for and ns-2 cannot do: a line for each, with key, expected and found."""
    document, wrong = scenario.document, []

    def refuse(key: str, expected: str, found: object) -> None:
        text = found if isinstance(found, str) else json.dumps(found)
        line = f"{key}: ns-2: expected {expected}, found {short(text)}"
        if line not in wrong:
            wrong.append(line)

    def others(table: Mapping[str, Any], known: tuple[str, ...], prefix: str = "") -> None:
        for key, value in table.items():
            if key not in known and value not in (None, False, [], {}):
                refuse(prefix + key, "none", value)

    others(document, TABLES)
    others(document["trace"], ("interval", "transfers"), "trace.")
    if "path" not in document:
        return wrong
    path = document["path"]
    others(path, PATH, "path.")
    others(path["reverse"], ("queue", "rate", "buffer"), "path.reverse.")
    if (queue := _named(path["queue"])["name"]) not in ("droptail", "red", "adaptive-red"):
        refuse("path.queue", "droptail, red or adaptive-red", queue)
    if (queue := _named(path["reverse"]["queue"])["name"]) != "droptail":
        refuse("path.reverse.queue", "droptail", queue)
    if path.get("loss") and path["loss"]["name"] != "random":
        refuse("path.loss", "random losses", path["loss"]["name"])
    for number, flow in enumerate(document["flow"]):
        key = f"flow.{number}."
        others(flow, FLOW, key)
        cc, tcp = _named(flow["cc"]), _stack(scenario, flow)
        ssthresh, counting, segments = tcp.get("initial_ssthresh"), tcp["byte_counting"], tcp["delayed_ack"]["segments"]
        name, form = cc["name"], cc.get("form", "published")
        if name not in LINUX:
            refuse(f"{key}cc", f"one of {', '.join(LINUX)}", name)
            continue
        for parameter, value in cc.items():
            if parameter not in ("name", "form", *PARAMETERS[name]) and form != "linux":
                refuse(f"{key}cc.{parameter}", "its default", value)
        if name == "htcp" and cc.get("rtt_scaling") == "seconds":
            refuse(f"{key}cc.rtt_scaling", "reference or off", "seconds")
        if name == "htcp" and cc.get("delta_b", 0.2) not in (0.2, math.inf, "inf"):
            refuse(f"{key}cc.delta_b", "0.2 or inf", cc["delta_b"])
        linux = name not in OWN or form == "linux"
        slow_start = _named(flow["slow_start"])
        if slow_start["name"] not in ("standard", "limited") or (linux and slow_start["name"] != "standard"):
            refuse(f"{key}slow_start", "standard" if linux else "standard or limited", slow_start["name"])
        if linux and tcp["recovery"] != "sack":
            refuse("tcp.recovery", f"sack with {name}, for which Agent/TCP/Linux stands", tcp["recovery"])
        if ssthresh is not None and (linux or slow_start["name"] == "limited"):
            refuse("tcp.initial_ssthresh", f"none with {name} and slow start {slow_start['name']}", ssthresh)
        if name not in OWN and counting == "per_ack" and segments > 1:
            refuse("tcp.byte_counting", f"abc with {name} and delayed ACKs, for it counts segments", "per_ack")
        if counting == "per_any_ack":
            refuse("tcp.byte_counting", "per_ack, which is the same where no ACK is divided", counting)
        for habit, value in tcp.get("misbehave", {}).items():
            if value != (habit == "ack_division"):
                refuse(f"tcp.misbehave.{habit}", "an honest end", value)
        if name == "hstcp" and not linux and counting != "per_ack" and segments > 1:
            refuse("tcp.byte_counting", "per_ack with hstcp and delayed ACKs, for ns-2 counts ACKs", counting)
        if name == "scalable" and form == "linux" and segments == 1:
            refuse("tcp.delayed_ack.segments", "2 with scalable in Linux's form, which adds 1/50 for each ACK", 1)
        if tcp["ecn"]:
            refuse("tcp.ecn", "false", "true")
        if segments > 2:
            refuse("tcp.delayed_ack.segments", "1 or 2", segments)
    return wrong


def expressed(scenario: Scenario) -> Scenario:
    """The scenario without the keys of its stacks that ns-2 cannot be told: scenarios that differ only in these are one."""
    document = json.loads(scenario.to_json())
    table = scenario.shown.document["tcp"]
    document["tcp"] = _told(document.get("tcp", {}), table)
    for flow in document["flow"]:
        if own := flow.get("tcp"):
            flow["tcp"] = _told(own, own)
    return Scenario(document)


def _told(own: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    # The name of an algorithm may imply a recovery, which the table of all keys does not show.
    told = {key: table[key] for key in STACK if table.get(key) is not None and (key != "recovery" or key in own)}
    if delayed := told.get("delayed_ack"):
        told["delayed_ack"] = {key: delayed[key] for key in DELAYED_ACK if key in delayed}
    return told


def differences(scenario: Scenario) -> list[str]:
    """What the stack of ns-2 does otherwise than that of a scenario, in words."""
    found = []
    for flow in flows_of(scenario, plan_of(scenario)):
        name, tcp = flow.cc["name"], flow.tcp
        if flow.linux:
            found.append(f"{name}: Linux 2.6.22's code, its recovery with rate halving, slow start by ACKs")
        elif flow.counted > 1:
            found.append(
                f"{name}: ns-2 counts ACKs, so an ACK adds {flow.counted} times as much; slow start counts ACKs"
            )
        if name == "scalable" and not flow.linux:
            found.append("scalable: no legacy window, and the first loss halves the window")
        if name == "hstcp" and not flow.linux:
            found.append("hstcp: the formulas of RFC 3649, not its table, and the first loss halves the window")
        own = {**scenario.document.get("tcp", {}), "delayed_ack.quick": tcp["delayed_ack"].get("quick")}
        found += [f"tcp.{key}: ns-2 has its own rule" for key, value in own.items() if key not in STACK and value]
    return list(dict.fromkeys(found))


def plan_of(scenario: Scenario) -> dict[str, Any]:
    """The resolved scenario in s, bit/s and packets; `classes` has one entry for each flow, with its drawn start.

    The extension module resolves a scenario for the fluid model, which knows neither adaptive RED nor access links and joins
    flows that are alike. So these are left out, and flows are distinguished by a threshold that nothing else uses.
    """
    document = json.loads(scenario.to_json())
    document["path"] = {k: v for k, v in document["path"].items() if k != "access_rate"} | {
        "queue": {"name": "droptail"}
    }
    flows = [flow | {"count": 1} for flow in document["flow"] for _ in range(flow["count"])]
    for number, flow in enumerate(flows):
        flow["tcp"] = {**flow.get("tcp", {}), "initial_ssthresh": UNLIMITED + number}
    return Scenario(document | {"flow": flows}).fluid_plan | {
        "queue": _named(scenario.document["path"]["queue"])["name"]
    }


def flows_of(scenario: Scenario, plan: Mapping[str, Any]) -> list[Flow]:
    """The flows of a scenario, resolved."""
    files = [flow for flow in scenario.document["flow"] for _ in range(flow["count"])]
    known = ("label", "rtt_s", "start_s", "stop_s", "initial_window")
    return [
        Flow(
            cc=_named(file["cc"]),
            tcp=_stack(scenario, file),
            slow_start=_named(file["slow_start"]),
            **{key: resolved[key] for key in known},
        )
        for file, resolved in zip(files, plan["classes"], strict=True)
    ]


def script(scenario: Scenario, plan: Mapping[str, Any], flows: list[Flow]) -> str:
    """The scenario as a script of ns-2, which prints samples into the file `samples`."""
    path = scenario.document["path"]
    queue, rate, base = _named(path["queue"]), plan["rate_bit_s"], min(flow.rtt_s for flow in flows)
    # DropTail of ns-2 refuses the packet that would fill its queue.
    buffer = round(plan["buffer_packets"]) + (queue["name"] == "droptail")
    back = _core.quantity(path["reverse"]["buffer"]) if path["reverse"].get("buffer") else None
    lines = [
        PROCEDURES.read_text(encoding="ascii"),
        f"ns-random {scenario.document['seed'] % SEEDS + 1}",
        "set left [$ns node]",
        "set right [$ns node]",
        f"$ns simplex-link $left $right {rate} {base / 2} {'DropTail' if queue['name'] == 'droptail' else 'RED'}",
        f"$ns simplex-link $right $left {_number(path['reverse'].get('rate', path['rate']))} {base / 2} DropTail",
        f"$ns queue-limit $left $right {buffer}",
        f"$ns queue-limit $right $left {round(back[0]) + 1 if back and back[1] == 'packets' else buffer}",
        "set link [$ns link $left $right]",
    ]
    if queue["name"] != "droptail":
        lines.append(f"set_all [$link queue] {{{_tcl(_red(queue))}}}")
    lines.append("monitor $link")
    if path.get("loss"):
        lines.append(f"lose $link {path['loss']['probability']} {rate}")
    access = path.get("access_rate")
    for number, flow in enumerate(flows):
        lines += ["set from $left", "set to $right"]
        if access or flow.rtt_s > base:
            speed = _number(access) if access else UNLIMITED_BIT_S
            lines.append(f"hosts {speed} {(flow.rtt_s - base) / 2}")
        lines += _agent(number, flow)
    lines += [
        f"sample m {plan['interval_s']} 1",
        f"sample t {plan['trace_s']} 1",
        f"$ns at {plan['from_s']} {{rows w}}",
        f"$ns at {plan['to_s']} {{rows w}}",
        f"$ns at {plan['duration_s']} {{finish}}",
        "$ns run",
    ]
    return "\n".join(lines) + "\n"


def _agent(number: int, flow: Flow) -> list[str]:
    """The lines that make the sender and the receiver of a flow."""
    agent, sink = ("TCP/Linux", "TCPSink/Sack1") if flow.linux else AGENTS[flow.tcp["recovery"]]
    headers = 52 if flow.tcp["timestamps"] else 40
    sender: dict[str, object] = {
        "packetSize_": flow.mss,
        "window_": UNLIMITED,
        "windowInit_": flow.initial_window,
        "timestamps_": str(bool(flow.tcp["timestamps"])).lower(),
        "ts_option_size_": 12,
        "tcpTick_": 0.001,
        "minrto_": _number(flow.tcp["rto_min"]),
        "singledup_": int(flow.tcp["limited_transmit"]),
        "maxburst_": flow.tcp.get("burst_limit") or 0,
    }
    if flow.tcp.get("receive_buffer"):
        sender["window_"] = int(_number(flow.tcp["receive_buffer"]) / flow.mss)
    lines = []
    cc, limited = flow.cc, flow.slow_start["name"] == "limited"
    if flow.linux:
        lines = [f"$tcp({number}) select_ca {LINUX[cc['name']]}", *_linux_parameters(number, flow)]
    elif cc["name"] == "hstcp":
        names = {"w_low": "low_window_", "w_high": "high_window_", "p_high": "high_p_", "b_high": "high_decrease_"}
        sender |= {"windowOption_": 8, **{names[key]: value for key, value in cc.items() if key in names}}
    elif cc["name"] == "scalable":
        rule = {
            "windowOption_": 6,
            "k_parameter_": -1,
            "l_parameter_": 1,
            "increase_num_": flow.counted * cc.get("a", 0.01),
        }
        sender["decrease_num_"] = 1 - cc.get("b", 0.125)
        if limited:
            # ns-2 limits slow start only within the rule of Standard TCP, so the flow has that one until its first reduction.
            lines = [f"$ns at {flow.start_s} {{until_cut {number} {{{_tcl(rule)}}}}}"]
        else:
            sender |= rule
    else:
        sender |= {"increase_num_": flow.counted * cc.get("a", 1.0), "decrease_num_": cc.get("beta", 0.5)}
    if limited:
        sender["max_ssthresh_"] = flow.slow_start.get("max_ssthresh", 100)
    if (ssthresh := flow.tcp.get("initial_ssthresh")) is not None:
        # Not before: the agent is reset as the run begins.
        lines.append(f"$ns at 0 {{$tcp({number}) set ssthresh_ {ssthresh}}}")
    receiver: dict[str, object] = {"packetSize_": headers, "ts_echo_rfc1323_": "true"}
    if flow.acked_together > 1:
        sink += "/DelAck"
        receiver["interval_"] = _number(flow.tcp["delayed_ack"]["timeout"])
    stop = [f'$ns at {flow.stop_s} "$ftp({number}) stop"'] if flow.stop_s is not None else []
    return [
        f"set tcp({number}) [new Agent/{agent}]",
        f"set_all $tcp({number}) {{{_tcl(sender)}}}",
        f"set sink({number}) [new Agent/{sink}]",
        f"set_all $sink({number}) {{{_tcl(receiver)}}}",
        f"$ns attach-agent $from $tcp({number})",
        f"$ns attach-agent $to $sink({number})",
        f"$ns connect $tcp({number}) $sink({number})",
        f"set ftp({number}) [new Application/FTP]",
        f"$ftp({number}) attach-agent $tcp({number})",
        f"$tcp({number}) attach [open cuts.{number} w]",
        f"$tcp({number}) tracevar ncwndcuts_",
        *lines,
        f'$ns at {flow.start_s} "$ftp({number}) start"',
        *stop,
    ]


def _linux_parameters(number: int, flow: Flow) -> list[str]:
    """The lines that set the parameters of an algorithm of `Agent/TCP/Linux`, where its published form differs from Linux's."""
    values: dict[str, int] = {}
    cc = flow.cc
    if cc.get("form") == "linux":
        return []
    if cc["name"] == "bic":
        # Linux 2.6.22 counts ACKs, and multiplies the increase by the segments that an ACK acknowledges. It begins with two, and
        # with an ACK for each segment stays at 31/16.
        values = {"max_increment": round(cc.get("s_max", 32) / (1 if flow.acked_together > 1 else 2))}
        values["low_window"] = round(cc.get("low_window", 14))
        values["fast_convergence"] = int(cc.get("fast_convergence", True))
    elif cc["name"] == "htcp":
        values = {
            "use_rtt_scaling": int(cc.get("rtt_scaling") != "off"),
            "use_bandwidth_switch": int(cc.get("delta_b", 0.2) == 0.2),
        }
    elif cc["name"] == "cubic":
        values = {"beta": round(0.7 * 1024)}
    return [f"$tcp({number}) set_ca_param {LINUX[cc['name']]} {key} {value}" for key, value in values.items()]


def _red(queue: Mapping[str, Any]) -> dict[str, object]:
    """ns-2's variables of a RED queue. Zero lets ns-2 choose by the rate, as ours does."""
    adaptive = queue["name"] == "adaptive-red"
    values: dict[str, object] = {"bytes_": "false", "queue_in_bytes_": "false", "adaptive_": int(adaptive)}
    values |= {"thresh_": 0, "maxthresh_": 0, "q_weight_": 0, "mean_pktsize_": 1500, "gentle_": "true", "wait_": "true"}
    for key, value in queue.items():
        if key in RED and value != "automatic":
            values[RED[key]] = str(value).lower()
    values["linterm_"] = 1 / queue.get("max_p", 0.1)
    values["targetdelay_"] = _number(queue.get("target_delay", "5 ms"))
    if adaptive:
        values["interval_"] = _number(queue.get("interval", "500 ms"))
    if queue.get("bytes"):
        values |= {"bytes_": "true", "queue_in_bytes_": "true"}
    return values


def _stack(scenario: Scenario, flow: Mapping[str, Any]) -> dict[str, Any]:
    """Every key of the stack of a flow."""
    stack = scenario.shown.document["tcp"]
    implied = {"recovery": name} if (name := _named(flow["cc"])["name"]) in ("tahoe", "newreno") else {}
    found = {**stack, **implied, **scenario.document.get("tcp", {}), **flow.get("tcp", {})}
    return found | {"delayed_ack": DELAYED_ACK | found["delayed_ack"]}


def _number(text: str) -> float:
    found = _core.quantity(text)
    assert found is not None
    return found[0]


def _named(value: Any) -> Mapping[str, Any]:
    """A choice with its parameters, as a table."""
    return value if isinstance(value, dict) else {"name": value}


def _tcl(values: Mapping[str, object]) -> str:
    return " ".join(f"{key} {value}" for key, value in values.items())
