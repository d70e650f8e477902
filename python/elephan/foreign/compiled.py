"""Algorithms in Python that are compiled to machine code, and called at every ACK through the C interface."""

import ctypes
import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from elephan import _core

# What colours a message of numba.
ESCAPES = re.compile("\x1b\\[[0-9;]*m")
# ELEPHAN_CC_ABI of the header.
ABI = 1
# The structures of the header, with their members in its order.
WINDOW = np.dtype([("cwnd", "f8"), ("ssthresh", "f8"), ("pacing_rate", "f8"), ("requests", "u8")], align=True)
RATE = np.dtype(
    [
        ("interval_ns", "i8"),
        *((name, "u8") for name in ("prior_delivered", "prior_delivered_ce")),
        *(
            (name, "u4")
            for name in ("delivered", "delivered_ce", "lost", "is_app_limited", "is_ack_delayed", "sent_in_flight")
        ),
    ],
    align=True,
)
ACK = np.dtype(
    [
        ("now_ns", "u8"),
        ("rtt_ns", "i8"),
        *((name, "u8") for name in ("min_rtt_ns", "srtt_ns", "sent_ns", "snd_una", "snd_nxt")),
        *((name, "u8") for name in ("delivered", "delivered_ce", "lost", "round")),
        ("growth", "f8"),
        *((name, "u4") for name in ("acked", "acked_cumulative", "in_flight", "prior_in_flight", "sacked")),
        *((name, "u4") for name in ("outstanding_max", "mss", "state", "is_window_limited", "is_ece")),
        ("rate", RATE),
        ("is_predicted", "u4"),
    ],
    align=True,
)
# The functions of an algorithm, with the kinds of their arguments after the state, and whether each is required.
FUNCTIONS: dict[str, tuple[tuple[Any, ...], bool]] = {
    "on_start": ((WINDOW, ACK), False),
    "on_ack": ((WINDOW, ACK), True),
    "on_congestion": ((WINDOW, ACK, "u4"), True),
    "on_state": ((WINDOW, ACK), False),
    "on_event": ((WINDOW, ACK, "u4"), False),
    "on_undo": ((WINDOW, WINDOW), False),
}


class _Parameter(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("meaning", ctypes.c_char_p),
        *((name, ctypes.c_double) for name in ("value", "low", "high")),
    )


class _Table(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("abi", "size", "flags", "reserved")),
        *((name, ctypes.c_char_p) for name in ("name", "title", "source")),
        ("parameters", ctypes.POINTER(_Parameter)),
        *((name, ctypes.c_void_p) for name in ("create", "clone", "destroy", *FUNCTIONS)),
    )


class Compiled:
    """An algorithm as machine code. `address` is that of its table, which lives as long as this object."""

    def __init__(self, made: type) -> None:
        try:
            import numba  # noqa: PLC0415 - the `compiled` extra
        except ImportError as error:
            raise TypeError(
                'numba: expected it to be installed, found none; pip install "elephan[compiled]"'
            ) from error
        self.name = made.__name__
        parameters = dict(getattr(made, "parameters", {}))
        state = np.dtype(
            [*((name, "f8") for name in parameters), ("seed", "u8"), *dict(getattr(made, "state", {})).items()],
            align=True,
        )
        self._functions = _memory(numba, state, len(parameters))
        for name, (kinds, required) in FUNCTIONS.items():
            function = getattr(made, name, None)
            if function is not None:
                self._functions[name] = _function(numba, function, state, kinds, f"{self.name}.{name}")
            elif required:
                raise TypeError(f"{self.name}: expected a function {name}, found none")
        rows = [
            _Parameter(name.encode(), p.meaning.encode(), p.default, p.low, p.high) for name, p in parameters.items()
        ]
        title = (inspect.getdoc(made) or self.name).partition("\n")[0].removesuffix(".")
        # The table refers to all of these without owning them.
        self._rows = (_Parameter * (len(rows) + 1))(*rows)
        self._texts = [self.name.encode(), title.encode(), str(getattr(made, "source", "")).encode() or None]
        self._table = _Table(
            ABI,
            ctypes.sizeof(_Table),
            int(getattr(made, "flags", 0)),
            0,
            *self._texts,
            self._rows,
            **{name: function.address for name, function in self._functions.items()},
        )
        self.address = ctypes.addressof(self._table)


def compiled(made: type) -> Compiled:
    """Compile a class whose functions are those of the C interface, without `self`: `on_ack(state, window, ack)` and so on.

    `window`, `ack` and their members are those of `elephan-cc.h`. `state` has the parameters of the class, `seed`, and what the
    class declares: `state = {"epoch_ns": "i8"}`, all zero at first. `flags` is a sum of `enum elephan_cc_flag`.

    Needs numba. Raises `TypeError` for what numba cannot compile.
    """
    return Compiled(made)


def _memory(numba: Any, state: np.dtype[Any], parameters: int) -> dict[str, Any]:
    """The functions that make, copy and free a state."""
    libc, words = ctypes.CDLL(None), ctypes.POINTER(ctypes.c_double)
    calloc, memcpy, free = libc.calloc, libc.memcpy, libc.free
    calloc.restype, calloc.argtypes = words, (ctypes.c_size_t, ctypes.c_size_t)
    memcpy.restype, memcpy.argtypes = words, (words, words, ctypes.c_size_t)
    free.restype, free.argtypes = None, (words,)
    types, carray, size = numba.types, numba.carray, state.itemsize

    def create(values: Any, seed: Any) -> Any:
        made = calloc(1, size)
        numbers = carray(made, (parameters + 1,))
        for n in range(parameters):
            numbers[n] = values[n]
        numbers.view(np.uint64)[parameters] = seed
        return made

    def clone(old: Any) -> Any:
        return memcpy(calloc(1, size), old, size)

    def destroy(old: Any) -> None:
        free(old)

    pointer = types.CPointer(types.double)
    return {
        "create": numba.cfunc(pointer(pointer, types.uint64))(create),
        "clone": numba.cfunc(pointer(pointer))(clone),
        "destroy": numba.cfunc(types.void(pointer))(destroy),
    }


def _function(
    numba: Any, function: Callable[..., None], state: np.dtype[Any], kinds: tuple[Any, ...], what: str
) -> Any:
    """A function of the class, callable from C."""
    types, carray = numba.types, numba.carray
    # A division by zero gives infinity, which ends the run with an error; an exception could not leave the function.
    inner = numba.njit(error_model="numpy")(function)
    second = kinds[1]
    if len(kinds) == 3:

        def call3(a: Any, b: Any, c: Any, d: Any) -> None:
            inner(carray(a, (1,), state)[0], carray(b, (1,), WINDOW)[0], carray(c, (1,), second)[0], d)

        call: Callable[..., None] = call3
    else:

        def call2(a: Any, b: Any, c: Any) -> None:
            inner(carray(a, (1,), state)[0], carray(b, (1,), WINDOW)[0], carray(c, (1,), second)[0])

        call = call2
    arguments = [types.voidptr] * 3 + [types.uint32] * (len(kinds) - 2)
    try:
        return numba.cfunc(types.void(*arguments))(call)
    except KeyError as error:
        known = [name for one in (state, WINDOW, ACK, RATE) for name in one.names or ()]
        raise TypeError(f"{what}: expected {_core.one_of(known, error.args[0])}, found '{error.args[0]}'") from error
    except numba.core.errors.NumbaError as error:
        lines = [ESCAPES.sub("", line).strip() for line in str(error).splitlines()]
        text = next((line for line in lines if line and "nopython" not in line), str(error))
        raise TypeError(f"{what}: expected what numba can compile, found: {text}") from error
