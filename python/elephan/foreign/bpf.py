"""Algorithms as eBPF programs, compiled for the host: `bpf:./mine.bpf.c` in the simulator.

A file has the form of those in `kernel/`, or that of the kernel's selftests (`tools/testing/selftests/bpf/progs/bpf_cubic.c`).
"""

import re
from pathlib import Path

from elephan import _core
from elephan.foreign import build, modules

ADAPTER = tuple(Path(__file__).with_name(name) for name in ("bpf.c", "bpf_kernel.c"))
NAME = re.compile(r"^\s*#\s*define\s+ALGORITHM\s+(\w+)\s*$", re.MULTILINE)
# The operations in the form of the selftests; of several, the last are those that are used.
OPERATIONS = re.compile(
    r'SEC\s*\(\s*"\.struct_ops(?:\.link)?"\s*\)\s*(?:static\s+)?struct\s+tcp_congestion_ops\s+(\w+)'
)
# The headers of that form, which are ours.
HEADERS = ("vmlinux.h", "bpf_tracing_net.h", "bpf_tcp_helpers.h", "bpf_kfuncs.h")
INCLUDED = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
DEFINED = re.compile(r"^static\b[^;{}()=]*\b(\w+)\s*\([^;{}]*\)\s*\{", re.MULTILINE)


def shared(path: Path) -> Path:
    """The shared object of a file. Raises `ValueError` as `build.shared` does, and for a file of another form."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if found := NAME.search(text):
        return _of_kernel(path, text, found[1])
    if found_all := OPERATIONS.findall(text):
        return _of_selftests(path, text, found_all[-1])
    expected = (
        '"#define ALGORITHM NAME", as in the files of kernel/, or a struct tcp_congestion_ops in SEC(".struct_ops")'
    )
    raise ValueError(f"{path}: expected {expected}, found neither")


def _of_kernel(path: Path, text: str, algorithm: str) -> Path:
    flags = ["-std=gnu11", "-fvisibility=hidden", f"-DALGORITHM={algorithm}"]
    if re.search(r"\bin_flight\b", text):
        flags.append("-DNEEDS_RATE")
    headers = {name: text for name, text in _core.kernel_sources().items() if name.endswith(".h")}
    return build.shared([path, *ADAPTER], flags=flags, texts=headers)


def _of_selftests(path: Path, text: str, operations: str) -> Path:
    """Compile the file as a module of Linux that registers its operations."""
    names = INCLUDED.findall(text)
    texts = {name: '#include "selftests.h"\n' for name in names if name in HEADERS or "/" in name}
    for name in names:
        if name not in texts and (beside := path.parent / name).is_file():
            texts[name] = beside.read_text(encoding="utf-8", errors="replace")
    # Functions of the file that our header has, too, get names of their own.
    known = set(re.findall(r"\w+", (modules.HERE / "linux.h").read_text(encoding="utf-8")))
    own = "".join(f"#undef {name}\n#define {name} el_own_{name}\n" for name in DEFINED.findall(text) if name in known)
    # The kernel's clock, of which our header has the rate.
    clock = "unsigned long CONFIG_HZ = 1000;\n" if "CONFIG_HZ" in text else ""
    begin = f'#include "selftests.h"\n{own}#line 1 "{path}"\n'
    begins = f"static int el_begin(void)\n{{\n\treturn tcp_register_congestion_control(&{operations});\n}}\n"
    end = f"\n{clock}{begins}module_init(el_begin);\n"
    texts[f"{path.name.partition('.')[0]}.c"] = f"{begin}{text}{end}"
    return build.shared(modules.SHIM, flags=modules.FLAGS, folders=(modules.HERE, path.parent), texts=texts)
