"""The few functions of libbpf that loading needs, called with ctypes.

Every system that has `ip` has libbpf as a shared library. Its interface is stable, and it needs no build step here, so
Rust and Python alone build the rest of Elephan. (libbpf-rs would need libelf, zlib and their headers at build time.)
"""

import ctypes
import ctypes.util
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from elephan.kernel.errors import KernelError

STRUCT_OPS_MAP = 26  # BPF_MAP_TYPE_STRUCT_OPS
STRUCT_OPS_ATTACH = 44  # BPF_STRUCT_OPS, an attach type
LINK_FLAG = 1 << 13  # BPF_F_LINK: the registration lasts as long as a link
LOG_LINES = 25
# The section of the parameters in kernel/elephan.h, and one of its rows: name, number of fractional bits, value.
PARAMETERS = b".rodata.parameters"
ROW = struct.Struct("=32sQQ")

_PRINT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_log: list[str] = []


class MapInfo(ctypes.Structure):
    """The beginning of struct bpf_map_info."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("id", ctypes.c_uint32),
        ("key_size", ctypes.c_uint32),
        ("value_size", ctypes.c_uint32),
        ("max_entries", ctypes.c_uint32),
        ("map_flags", ctypes.c_uint32),
        ("name", ctypes.c_char * 16),
    )


_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "bpf_object__open_mem": (ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]),
    "bpf_object__load": (ctypes.c_int, [ctypes.c_void_p]),
    "bpf_object__close": (None, [ctypes.c_void_p]),
    "bpf_object__find_map_by_name": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]),
    "bpf_object__next_map": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_void_p]),
    "bpf_map__type": (ctypes.c_int, [ctypes.c_void_p]),
    "bpf_map__fd": (ctypes.c_int, [ctypes.c_void_p]),
    "bpf_map__map_flags": (ctypes.c_uint32, [ctypes.c_void_p]),
    "bpf_map__set_map_flags": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint32]),
    "bpf_map__initial_value": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)]),
    "bpf_map__set_initial_value": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]),
    "bpf_map__attach_struct_ops": (ctypes.c_void_p, [ctypes.c_void_p]),
    "bpf_link__fd": (ctypes.c_int, [ctypes.c_void_p]),
    "bpf_link__disconnect": (None, [ctypes.c_void_p]),
    "bpf_link_create": (ctypes.c_int, [ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]),
    "bpf_map_get_next_id": (ctypes.c_int, [ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32)]),
    "bpf_map_get_fd_by_id": (ctypes.c_int, [ctypes.c_uint32]),
    "bpf_obj_get_info_by_fd": (ctypes.c_int, [ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32)]),
    "bpf_map_lookup_elem": (ctypes.c_int, [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]),
    "bpf_map_delete_elem": (ctypes.c_int, [ctypes.c_int, ctypes.c_void_p]),
    "libbpf_set_print": (ctypes.c_void_p, [_PRINT]),
    "libbpf_version_string": (ctypes.c_char_p, []),
}


def _keep(level: int, text: bytes, arguments: int | None) -> int:
    """Keep the messages of libbpf: warnings, which include the verifier's output."""
    if level > 0:
        return 0
    buffer = ctypes.create_string_buffer(1 << 16)
    _libc.vsnprintf(buffer, len(buffer), ctypes.c_char_p(text), ctypes.c_void_p(arguments))
    _log.append(buffer.value.decode(errors="replace"))
    return 0


_libc = ctypes.CDLL(None)
_KEEP, _SILENT = _PRINT(_keep), _PRINT(0)


@cache
def library() -> Any:
    """The library. Raises `KernelError` if it is not installed."""
    try:
        found = ctypes.CDLL("libbpf.so.1", use_errno=True)
    except OSError as error:
        raise KernelError("libbpf: expected version 1 to be installed (apt-get install libbpf1), found none") from error
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    found.libbpf_set_print(_SILENT)
    return found


def version() -> str:
    """The version of libbpf."""
    return str(library().libbpf_version_string().decode())


def _refused(what: str, code: int = 0) -> KernelError:
    number = -code if code < 0 else ctypes.get_errno()
    lines = [line for line in "".join(_log).splitlines() if line.strip()]
    log = "".join(f"\n    {line}" for line in lines[-LOG_LINES:])
    return KernelError(f"{what}: {os.strerror(number)}{log}")


def _set_parameters(lib: Any, loaded: int, values: Sequence[int] | Mapping[str, float]) -> None:
    """Set the parameters of an object that is not loaded yet, in fixed point. The verifier treats them as constants.

    `values` has all of them in fixed point, or some by name.
    """
    if not values:
        return
    size = ctypes.c_size_t(0)
    table = lib.bpf_object__find_map_by_name(loaded, PARAMETERS)
    start = lib.bpf_map__initial_value(table, ctypes.byref(size)) if table else None
    rows = bytearray(ctypes.string_at(start, size.value) if start else b"")
    if len(rows) < len(values) * ROW.size:
        raise KernelError(f"object: expected a table of {len(values)} parameters, found {len(rows) // ROW.size}")
    for number in range(len(rows) // ROW.size):
        name, bits, value = ROW.unpack_from(rows, number * ROW.size)
        if isinstance(values, Mapping):
            value = round(values.get(name.rstrip(b"\0").decode(), value / 2**bits) * 2**bits)
        elif number < len(values):
            value = values[number]
        ROW.pack_into(rows, number * ROW.size, name, bits, value)
    code = lib.bpf_map__set_initial_value(table, bytes(rows), len(rows))
    if code < 0:
        raise _refused("object: libbpf refused its parameters", code)


def register(data: bytes, what: str, values: Sequence[int] | Mapping[str, float], *, linked: bool) -> int | None:
    """Load an object with one struct_ops and these values of its parameters, and register it.

    With `linked`, the registration lasts as long as the returned descriptor, and so at most as long as this process.
    Otherwise it lasts until it is deleted.
    """
    try:
        return _register(data, what, values, linked=linked)
    except KernelError:
        # Only now with messages: Ctrl-C would be lost if it came while Python keeps one, because a callback cannot raise.
        library().libbpf_set_print(_KEEP)
        try:
            return _register(data, what, values, linked=linked)
        finally:
            library().libbpf_set_print(_SILENT)


def _register(data: bytes, what: str, values: Sequence[int] | Mapping[str, float], *, linked: bool) -> int | None:
    lib = library()
    _log.clear()
    loaded = lib.bpf_object__open_mem(data, len(data), None)
    if not loaded:
        raise _refused(f"{what}: libbpf refused the object")
    try:
        ops = lib.bpf_object__next_map(loaded, None)
        while ops and lib.bpf_map__type(ops) != STRUCT_OPS_MAP:
            ops = lib.bpf_object__next_map(loaded, ops)
        if not ops:
            raise KernelError(f"{what}: expected a struct_ops in the object, found none")
        _set_parameters(lib, loaded, values)
        if linked:
            lib.bpf_map__set_map_flags(ops, lib.bpf_map__map_flags(ops) | LINK_FLAG)
        code = lib.bpf_object__load(loaded)
        if code < 0:
            raise _refused(f"{what}: the kernel refused the program", code)
        link = lib.bpf_map__attach_struct_ops(ops)
        if not link:
            raise _refused(f"{what}: the kernel refused to register it")
        # Forgetting the link in libbpf does not undo the registration.
        lib.bpf_link__disconnect(link)
        if not linked:
            return None
        if lib.bpf_link__fd(link) != lib.bpf_map__fd(ops):
            # The descriptor of a separate link, which libbpf does not close.
            return int(lib.bpf_link__fd(link))
        # libbpf before 1.2 fills the map, and leaves creating the link to its caller.
        made = int(lib.bpf_link_create(lib.bpf_map__fd(ops), 0, STRUCT_OPS_ATTACH, None))
        if made < 0:
            raise _refused(f"{what}: the kernel refused to register it", made)
        return made
    finally:
        lib.bpf_object__close(loaded)


def maps(kind: int) -> Iterator[tuple[int, bytes, bytes]]:
    """Every map of this kind (`BPF_MAP_TYPE_`...) on the machine: its number, its name, and its first value."""
    lib = library()
    number = ctypes.c_uint32(0)
    zero = ctypes.c_uint32(0)
    while lib.bpf_map_get_next_id(number.value, ctypes.byref(number)) == 0:
        descriptor = lib.bpf_map_get_fd_by_id(number.value)
        if descriptor < 0:
            continue
        try:
            info, size = MapInfo(), ctypes.c_uint32(ctypes.sizeof(MapInfo))
            lib.bpf_obj_get_info_by_fd(descriptor, ctypes.byref(info), ctypes.byref(size))
            if info.type == kind:
                value = ctypes.create_string_buffer(info.value_size)
                if lib.bpf_map_lookup_elem(descriptor, ctypes.byref(zero), value) == 0:
                    yield number.value, info.name, value.raw
        finally:
            os.close(descriptor)


def delete(number: int, what: str) -> None:
    """Unregister the struct_ops in a map. Connections that use it keep it until they end."""
    lib = library()
    zero = ctypes.c_uint32(0)
    descriptor = lib.bpf_map_get_fd_by_id(number)
    if descriptor < 0:
        raise _refused(what, descriptor)
    try:
        code = lib.bpf_map_delete_elem(descriptor, ctypes.byref(zero))
        if code < 0:
            raise _refused(f"{what}: the kernel refused to unregister it", code)
    finally:
        os.close(descriptor)
