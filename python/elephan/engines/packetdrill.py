"""Runs scripts of packetdrill on the simulator's TCP, or on that of a guest kernel, both in virtual time."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from elephan import _core
from elephan.guest import image
from elephan.kernel.errors import KernelError

STATES = (
    *("ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT"),
    *("CLOSE", "CLOSE_WAIT", "LAST_ACK", "LISTEN", "CLOSING"),
)
# Bits of `tcpi_options` (include/uapi/linux/tcp.h).
TCP_OPTIONS = ("TIMESTAMPS", "SACK", "WSCALE", "ECN", "ECN_SEEN", "SYN_DATA", "USEC_TS", "TFO_CHILD")
# The names that packetdrill gives the code of a script, besides those of `struct tcp_info`.
CONSTANTS = {
    **{f"TCP_CA_{name}": number for number, name in enumerate(("Open", "Disorder", "CWR", "Recovery", "Loss"))},
    **{f"TCP_{name}": number for number, name in enumerate(STATES, 1)},
    **{f"TCPI_OPT_{name}": 1 << bit for bit, name in enumerate(TCP_OPTIONS)},
}


@dataclass(frozen=True)
class Report:
    """The result of a script: `passed`, `skipped` or `failed`.

    A skipped script has a reason; a failed one has the text of its line, and what was expected and seen there. The line is
    0 if it is the script as a whole. `ignored` are settings of a kernel (`KEY=VALUE`) that the stack does not know,
    without which the script was run.
    """

    file: str
    outcome: str
    line: int = 0
    reason: str = ""
    text: str = ""
    expected: str = ""
    seen: str = ""
    ignored: Sequence[str] = ()


def check(keys: Mapping[str, str]) -> None:
    """Raise `ScenarioError` for keys of the simulated stack that do not exist, or values that they cannot have."""
    _core.run_packetdrill("", "--set", list(keys.items()), None, lambda _code, _values: ("", False))


def kernel(version: str | None = None) -> image.Image:
    """The newest image of a kernel, or of `version`. Raises `KernelError` if something is missing."""
    lacks = image.missing_files()
    if lacks:
        raise KernelError("\n".join(lacks))
    return image.find(version)


def run(file: Path, keys: Mapping[str, str] | None = None, *, guest: image.Image | None = None) -> Report:
    """Run a script on a `guest`, or on the simulator, whose stack `keys` set (`tcp.rack`) after the script's own settings.

    The Python code of the script runs in this process. Raises `ScenarioError` for a script or a key that cannot be read, and
    `OSError` if the guest fails.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise _core.ScenarioError(
            f"{file}: expected text in UTF-8, found the byte {error.object[error.start]:#04x}"
        ) from None
    names: dict[str, object] = dict(CONSTANTS)

    def judge(code: str, values: dict[str, int]) -> tuple[str, bool]:
        names.update(values)
        try:
            # Its last line may end with a backslash.
            exec(compile(code + "\n", str(file), "exec"), names)
        except NameError as error:
            return (error.name or str(error), True)
        except Exception as error:
            return (f"{type(error).__name__}: {error}".removesuffix(": "), False)
        return ("", False)

    files = (guest.path, image.INIT, image.LINKS) if guest else None
    report = json.loads(_core.run_packetdrill(text, str(file), list((keys or {}).items()), files, judge))
    return Report(file=str(file), **report)
