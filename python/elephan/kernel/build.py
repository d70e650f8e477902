"""Makes an object that registers an algorithm under a given name: the source is compiled once, then the object is renamed.

clang compiles for eBPF, once for all kernels. The loader relocates fields to their offsets in the running kernel. So a wheel
has the objects of `kernel/`, and clang is needed only for a user's own files.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from elephan import _core
from elephan.base.folders import new_file
from elephan.kernel.errors import KernelError

FLAGS = ("-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", "-c")

# What `make objects` puts here: the objects, and the digest of their sources.
SHIPPED = Path(__file__).with_name("objects")
KEY = "sources.sha256"
# TCP_CA_NAME_MAX of the kernel.
NAME_BYTES = 16
REGISTERED = re.compile(r'\.name\s*=\s*"(\w{1,15})"')


def clang() -> str | None:
    """The path of the compiler; None if it is not installed."""
    return shutil.which(os.environ.get("CLANG", "clang"))


def cache() -> Path:
    """The folder that stores compiled objects."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "elephan" / "kernel"


def key() -> str:
    """A digest of all files of `kernel/` and of the flags, in hexadecimal digits."""
    sources = _core.kernel_sources()
    digest = hashlib.sha256("\0".join(f"{name}\0{text}" for name, text in sorted(sources.items())).encode())
    digest.update(" ".join(FLAGS).encode())
    return digest.hexdigest()


def shipped() -> Path | None:
    """The folder of the objects that came with this package; None if it has none, or those of other sources."""
    file = SHIPPED / KEY
    return SHIPPED if file.is_file() and file.read_text(encoding="ascii") == key() else None


def object_name(source: str) -> str:
    """The name of the object of a source file."""
    return source.replace(".bpf.c", ".bpf.o")


def compiled(source: str) -> bytes:
    """The object of a source file of `kernel/`: that of the package, or else of the cache, if the sources are the same.

    A cached file begins with a digest of the object. Raises `KernelError` if there is no clang, or if it refuses the file.
    """
    if (ready := shipped()) is not None:
        return (ready / object_name(source)).read_bytes()
    folder = cache() / key()[:16]
    kept = folder / object_name(source)
    if kept.is_file():
        digest_kept, data = kept.read_bytes().partition(b"\n")[::2]
        if digest_kept.decode("ascii", "replace") == hashlib.sha256(data).hexdigest():
            return data
        # The cached file is damaged, so the source is compiled again.
    data = made(source)
    folder.mkdir(parents=True, exist_ok=True)
    with new_file(kept) as new:
        new.write_bytes(hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
    return data


def registered_name(path: Path) -> str:
    """The name that such a file registers. Raises `KernelError` if it has none."""
    found = REGISTERED.search(path.read_text(encoding="utf-8", errors="replace"))
    if found is None:
        raise KernelError(
            f'{path}: expected a struct_ops with a .name = "..." of less than {NAME_BYTES} bytes, found none'
        )
    return found[1]


def made(source: str) -> bytes:
    """The object of a file of `kernel/`, or of the file with this absolute path, as clang compiles it now."""
    compiler = clang()
    if compiler is None:
        raise KernelError("clang: expected it to be installed (apt-get install clang), found none")
    with tempfile.TemporaryDirectory() as place:
        for name, text in _core.kernel_sources().items():
            (Path(place) / name).write_text(text, encoding="utf-8")
        output = Path(place) / "out.o"
        command = [compiler, *FLAGS, f"-I{place}", str(Path(place) / source), "-o", str(output)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise KernelError(f"{source}: clang refused it:\n{done.stderr.strip()}")
        return output.read_bytes()


def renamed(data: bytes, registered: str, name: str) -> bytes:
    """The object that registers `name` instead of `registered`.

    The name is changed before the object is opened, because libbpf before 1.4 cannot change a struct_ops afterwards.
    """
    place, put = (text.encode().ljust(NAME_BYTES, b"\0") for text in (registered, name))
    if data.count(place) != 1 or len(name) >= NAME_BYTES:
        raise KernelError(
            f"object: expected a name of less than {NAME_BYTES} bytes and one place for it, found {name!r}"
        )
    return data.replace(place, put)
