"""From the sources to an object for this run: compiled once, then given its parameters and its name.

clang compiles for eBPF, once for all kernels; the loader relocates fields to where the running kernel has them. Parameters are
constants in a section of their own, so that other values are written into the object before the kernel sees it.
"""

import hashlib
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from elephan import _core
from elephan.kernel.errors import KernelError

FLAGS = ("-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", "-c")

# struct parameter of kernel/elephan.h: a name, the bits behind the point, the value.
ROW = struct.Struct("<32sQQ")
PARAMETERS = ".rodata.parameters"
STRUCT_OPS = ".struct_ops"
# TCP_CA_NAME_MAX of the kernel.
NAME_BYTES = 16


def clang() -> str | None:
    """The compiler, where there is one."""
    return shutil.which(os.environ.get("CLANG", "clang"))


def cache() -> Path:
    """Where objects are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "elephan" / "kernel"


def compiled(source: str) -> bytes:
    """The object of a source file of `kernel/`, from the cache where it is there.

    Raises `KernelError` where there is no clang, or where it refuses the file.
    """
    sources = _core.kernel_sources()
    digest = hashlib.sha256("\0".join(f"{name}\0{text}" for name, text in sorted(sources.items())).encode())
    digest.update(" ".join(FLAGS).encode())
    folder = cache() / digest.hexdigest()[:16]
    kept = folder / source.replace(".bpf.c", ".bpf.o")
    if kept.is_file():
        return kept.read_bytes()
    compiler = clang()
    if compiler is None:
        raise KernelError("clang: expected it to be installed (apt-get install clang), found none")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        for name, text in sources.items():
            (Path(place) / name).write_text(text, encoding="utf-8")
        made = Path(place) / "out.o"
        command = [compiler, *FLAGS, str(Path(place) / source), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise KernelError(f"{source}: clang refused it:\n{done.stderr.strip()}")
        data = made.read_bytes()
    # Under another name first, so that two at a time do not read half a file.
    part = kept.with_suffix(f".{os.getpid()}")
    part.write_bytes(data)
    part.rename(kept)
    return data


def section(data: bytes, name: str) -> tuple[int, int]:
    """Where a section of a 64-bit little-endian ELF file is: its offset and size."""
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    (names_at,) = struct.unpack_from("<Q", data, table + names * size + 0x18)
    for number in range(count):
        header = table + number * size
        (text_at,) = struct.unpack_from("<I", data, header)
        start = names_at + text_at
        if data[start : data.index(0, start)].decode() == name:
            offset, length = struct.unpack_from("<QQ", data, header + 0x18)
            return offset, length
    raise KernelError(f"object: expected a section {name}, found none")


def adjusted(data: bytes, registered: str, name: str, values: Sequence[int]) -> bytes:
    """The object with these values for its parameters, which registers `name` in place of `registered`."""
    result = bytearray(data)
    at, _ = section(data, PARAMETERS)
    for number, value in enumerate(values):
        text, bits, _ = ROW.unpack_from(result, at + number * ROW.size)
        ROW.pack_into(result, at + number * ROW.size, text, bits, value)
    at, length = section(data, STRUCT_OPS)
    there = bytes(result[at : at + length]).find(registered.encode().ljust(NAME_BYTES, b"\0"))
    if there < 0 or len(name) >= NAME_BYTES:
        raise KernelError(f"object: expected a name of less than {NAME_BYTES} bytes and a place for it, found {name!r}")
    result[at + there : at + there + NAME_BYTES] = name.encode().ljust(NAME_BYTES, b"\0")
    return bytes(result)
