"""Images of kernels, for the engine `kernel`: a stock Linux kernel as a process (user-mode Linux), with a driver of ours.

    from elephan.guest import image

    image.build("linux-source-6.12")
    image.find("6.12").path

An image is built once from a kernel's source on the user's machine, and stays in the cache. The driver is `kernel/guest`, with
the algorithms of `kernel/`. Edits of a few lines make the clock and the random numbers of the guest exact and repeatable.
"""

import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from elephan import _core
from elephan.base.cores import core_count
from elephan.base.folders import new_folder, only_writer
from elephan.base.kinds import IMAGE
from elephan.kernel import build as objects
from elephan.kernel.errors import KernelError

Progress = Callable[[float], object]

DEFAULT = "linux-source-6.12"
# The oldest kernel that images are built from.
OLDEST = (6, 1)
# What a build takes: processor time, and space on disk while it runs, with a reserve.
COST = "4 minutes of processor time and 0.6 GB of disk meanwhile"
SPACE_BYTES = 700_000_000
# About so many objects are compiled. It is only for the display of progress.
OBJECTS = 600
# Shares of a build's time at which the source is unpacked, and configured.
UNPACKED, CONFIGURED = 0.06, 0.1
TOOLS = ("tar", "xz", "make", "gcc", "ld", "flex", "bison", "bc", "nice")
PACKAGES = "apt-get install make gcc libc6-dev flex bison bc xz-utils"
DEBIAN_SOURCES = Path("/usr/src")
# What runs in a guest: its first program, and the links of its network.
FILES = Path(__file__).with_name("bin")
INIT, LINKS = FILES / "elephan-init", FILES / "libelephan_emulator.so"
# In the tree of a build: the source and the compiler, once it is configured.
READY = "elephan.json"
# The place of our driver in a kernel's tree.
DRIVER = Path("drivers/elephan")
PROGRAM = "linux"
LOG_LINES = 12
ERROR = re.compile(r"\berror:|\*\*\*|No space left|Killed|undefined reference", re.IGNORECASE)

# Code of a kernel's tree that an image does not need: most of it. The configurations beside it are needed.
OTHER_CODE = (
    *("arch/alpha", "arch/arc", "arch/arm", "arch/arm64", "arch/csky", "arch/hexagon", "arch/ia64", "arch/loongarch"),
    *("arch/m68k", "arch/microblaze", "arch/mips", "arch/nios2", "arch/openrisc", "arch/parisc", "arch/powerpc"),
    *("arch/riscv", "arch/s390", "arch/sh", "arch/sparc", "arch/xtensa"),
    *("drivers/accel", "drivers/acpi", "drivers/ata", "drivers/clk", "drivers/comedi", "drivers/crypto", "drivers/dma"),
    *("drivers/gpio", "drivers/gpu", "drivers/hid", "drivers/hwmon", "drivers/i2c", "drivers/iio"),
    *("drivers/infiniband", "drivers/input", "drivers/leds", "drivers/md", "drivers/media", "drivers/mfd"),
    *("drivers/misc", "drivers/mmc", "drivers/mtd", "drivers/net/ethernet", "drivers/net/wireless", "drivers/phy"),
    *("drivers/pinctrl", "drivers/platform", "drivers/power", "drivers/regulator", "drivers/rtc", "drivers/s390"),
    *("drivers/scsi", "drivers/soc", "drivers/spi", "drivers/staging", "drivers/usb", "drivers/watchdog"),
    *("fs/bcachefs", "fs/btrfs", "fs/ceph", "fs/ext4", "fs/f2fs", "fs/gfs2", "fs/nfs", "fs/nfsd", "fs/ntfs3"),
    *("fs/ocfs2", "fs/smb", "fs/ubifs", "fs/xfs", "samples", "sound"),
)
# The same as patterns of tar, with other folders.
NOT_NEEDED = (
    *(f"*/{folder}/*.[chS]" for folder in OTHER_CODE),
    *("*.dts", "*.dtsi", "*/Documentation/*/*", "*/tools/perf", "*/tools/testing", "*/.git"),
)
# What a build leaves in a tree: it would enter ours.
BUILT = (
    *("*.o", "*.a", "*.ko", "*.cmd", "*.order", "./.config*", "./vmlinux*", "./linux", "./System.map"),
    *("./include/config", "./include/generated", "./arch/*/include/generated"),
)


@dataclass(frozen=True)
class Edit:
    """A change of a kernel's source: wherever `old` is in `file`, `new` replaces it.

    The text has to be there, except in a kernel that has the text `unless` and does not need the edit.
    """

    file: str
    old: str
    new: str
    # No part of what identifies an image: it changes no edit.
    unless: str | None = field(default=None, repr=False)


EDITS = (
    # Timers of the kernel count milliseconds, as most distributions' kernels do.
    Edit("arch/um/Kconfig", "config HZ\n\tint\n\tdefault 100\n", "config HZ\n\tint\n\tdefault 1000\n"),
    # The clock counts single nanoseconds, and timers fire when they are due.
    Edit("arch/um/include/linux/time-internal.h", "#define TIMER_MULTIPLIER 256\n", "#define TIMER_MULTIPLIER 1\n"),
    Edit("arch/um/include/linux/time-internal.h", "#define TIMER_MIN_DELTA  500\n", "#define TIMER_MIN_DELTA  1\n"),
    # The buffer for the processor's extended state is too small on processors with AMX. Programs of the guest do without. Newer
    # kernels ask the host for its size.
    Edit(
        "arch/x86/um/os-Linux/registers.c",
        "\t\thave_xstate_support = 1;\n",
        "\t\thave_xstate_support = 0;\n",
        unless="host_fp_size",
    ),
    # The processes of the guest end with it, however it ends.
    Edit(
        "arch/um/os-Linux/skas/process.c",
        "PTRACE_O_TRACESYSGOOD)",
        "(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))",
    ),
    # A seed determines the random numbers that the guest gets from the host (SplitMix64).
    Edit(
        "arch/um/os-Linux/util.c",
        "\treturn getrandom(buf, len, flags);\n",
        """\
	static unsigned long long state;
	const char *seed = getenv("ELEPHAN_SEED");
	unsigned char *to = buf;
	size_t i;

	if (!seed)
		return getrandom(buf, len, flags);
	if (!state)
		state = strtoull(seed, NULL, 10);
	for (i = 0; i < len; i++) {
		unsigned long long z = state += 0x9e3779b97f4a7c15ull;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
		to[i] = z ^ (z >> 31);
	}
	return len;
""",
    ),
    # The guest's memory is a file without a folder: /dev/shm of a container is smaller than a guest's memory.
    Edit(
        "arch/um/os-Linux/mem.c",
        "\tchar *tempname;\n\tint fd;\n\n",
        """\
	char *tempname;
	int fd = memfd_create("elephan", MFD_CLOEXEC);

	if (fd >= 0) {
		tempdir = "memory";
		return fd;
	}
""",
    ),
    Edit(
        "drivers/Makefile",
        "obj-y\t\t\t\t+= irqchip/\n",
        "obj-y\t\t\t\t+= irqchip/\nobj-$(CONFIG_ELEPHAN)\t\t+= elephan/\n",
    ),
    Edit(
        "drivers/Kconfig",
        'source "drivers/most/Kconfig"\n',
        'source "drivers/most/Kconfig"\n\nsource "drivers/elephan/Kconfig"\n',
    ),
)
# Settings of every build: an image depends on sources and compiler, and not on who built it when and where.
REPEATABLE = {
    "LC_ALL": "C",
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER": "elephan",
    "KBUILD_BUILD_HOST": "elephan",
    "KBUILD_BUILD_VERSION": "1",
}


@dataclass(frozen=True)
class Image:
    """An image of a kernel.

    `path` is the executable, `digest` its SHA-256, `built` a date and time (UTC). An image whose driver is not that of this
    version of Elephan is `outdated`.
    """

    version: str
    path: Path
    digest: str
    compiler: str
    built: str
    outdated: bool

    @property
    def identity(self) -> str:
        """What distinguishes images: the version, and the beginning of the digest."""
        return f"{self.version} {self.digest[:16]}"


def folder() -> Path:
    """The folder of the images."""
    return objects.cache().parent / "kernels"


def images() -> list[Image]:
    """Every image of this user, the newest version first, and of a version the one that was built last."""
    found = []
    for path in folder().glob(f"[0-9]*-*/{IMAGE.document}"):
        # What is damaged or incomplete is no image.
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            told = json.loads(path.read_text(encoding="utf-8"))
            program = path.with_name(PROGRAM)
            texts = {name: str(told[name]) for name in ("version", "digest", "compiler", "built")}
            _numbers(texts["version"])
            if os.access(program, os.X_OK):
                found.append(Image(**texts, path=program, outdated=told["guest"] != _guest()))
    return sorted(found, key=lambda image: (_numbers(image.version), image.built), reverse=True)


@cache
def programs() -> str:
    """A digest of what runs in a guest besides its kernel: the first program, and the links."""
    digest = hashlib.blake2b(digest_size=6)
    for path in (INIT, LINKS):
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()


def find(version: str | None = None) -> Image:
    """The newest image, or the newest whose version is `version` or begins with it: "6.12" stands for 6.12.117.

    Raises `KernelError` if there is none; the message has the command that builds one.
    """
    wanted = version.split(".") if version else []
    there = [image for image in images() if image.version.split(".")[: len(wanted)] == wanted]
    for image in there:
        if not image.outdated:
            return image
    name = f"linux-source-{'.'.join(wanted[:2])}" if wanted else DEFAULT
    others = ", ".join(image.version for image in images() if not image.outdated)
    found = "one for another version of Elephan" if there else f"those of {others}" if others else "none"
    what = f"an image of Linux {version}" if version else "an image of a kernel"
    raise KernelError(
        f"kernel.version: expected {what}, found {found}; `elephan kernel build {name}` builds it, which takes {COST}"
    )


def build(source: str = DEFAULT, *, force: bool = False, progress: Progress | None = None) -> Image:
    """Build an image from a kernel's source, and put it into the cache; an image that is there already is returned.

    `source` is a kernel's tree, which stays as it is, a tarball of one, or the name of a Debian package whose tarball is in
    `/usr/src`. With `force` an image that is there is built again. `progress` is called with the completed share. A build that
    was interrupted goes on where it was, if source and compiler are the same.

    Raises `KernelError` for unsuitable sources and machines, `OSError` if the disk refuses something.
    """
    folder().mkdir(parents=True, exist_ok=True)
    lacks, place = _missing(folder()), None
    try:
        place = _source(source)
    except KernelError as error:
        lacks.append(str(error))
    if lacks or place is None:
        raise KernelError("\n".join(lacks))
    version = _version(place)
    target = folder() / f"{version}-{_guest()[:12]}"
    if not force:
        for image in images():
            if image.path.parent == target and not image.outdated:
                return image
    tell = progress or (lambda _: None)
    work = folder() / f"build-{target.name}"
    for other in folder().glob(f"build-{version}-*"):
        # An interrupted build of an earlier version of Elephan, unless one writes there.
        if other != work:
            with contextlib.suppress(FileExistsError), only_writer(other, "build"):
                shutil.rmtree(other)
    with only_writer(work, "build"):
        try:
            _make_image(place, version, work / "tree", tell)
            with new_folder(target, force=force) as made:
                _keep(work / "tree", made, place, version)
        except (KernelError, OSError):
            # What failed would fail again; what was interrupted goes on.
            shutil.rmtree(work)
            raise
        except KeyboardInterrupt as stopped:
            stopped.add_note("the same command goes on where it was")
            raise
        shutil.rmtree(work)
    return next(image for image in images() if image.path.parent == target)


def _make_image(place: Path, version: str, tree: Path, tell: Progress) -> None:
    """Unpack, edit, configure and compile a source in `tree`, or go on with it."""
    ready = json.dumps([str(place), _state(place), _compiler()])
    if not (tree / READY).is_file() or (tree / READY).read_text(encoding="utf-8") != ready:
        if tree.exists():
            shutil.rmtree(tree)
        tree.mkdir()
        _unpack(place, tree)
        tell(UNPACKED)
        _add_driver(tree, version)
        _configure(tree, version)
        (tree / READY).write_text(ready, encoding="utf-8")
    tell(CONFIGURED)
    _compile(tree, version, lambda share: tell(CONFIGURED + (1 - CONFIGURED) * share))


def _keep(tree: Path, made: Path, place: Path, version: str) -> None:
    """Copy the image of a tree, and describe it."""
    shutil.copy2(tree / PROGRAM, made / PROGRAM)
    told = {
        "version": version,
        "digest": hashlib.sha256((made / PROGRAM).read_bytes()).hexdigest(),
        "guest": _guest(),
        "config": hashlib.sha256((tree / ".config").read_bytes()).hexdigest(),
        "compiler": _compiler(),
        "source": str(place),
        "elephan": _core.__version__,
        "built": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    (made / IMAGE.document).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def _compiler() -> str:
    return _output(["gcc", "--version"]).partition("\n")[0]


def _state(place: Path) -> list[int]:
    """What changes with a source: the number of its files, and when the last of them was changed."""
    files = [path for path in place.rglob("*") if path.is_file()] if place.is_dir() else [place]
    return [len(files), max(path.stat().st_mtime_ns for path in files)]


@cache
def _guest() -> str:
    """A hash of what Elephan adds to a kernel: an image depends on it, and not on Elephan's version."""
    parts = [sorted(_core.kernel_sources(guest=True).items()), EDITS, sorted(REPEATABLE.items())]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


# The machine and the source.


def missing_files() -> list[str]:
    """What a guest needs besides an image, and this package lacks."""
    return [
        f"{file}: expected a file of this package, found none; in a source tree `make guest` builds it"
        for file in (INIT, LINKS)
        if not file.is_file()
    ]


def _missing(place: Path) -> list[str]:
    """Why this machine cannot build or run images: every line says what was expected and found."""
    system = f"{platform.system()} on {platform.machine()}"
    lines = missing_files()
    if system != "Linux on x86_64":
        lines.append(f"machine: expected Linux on x86_64, found {system}")
    lines += [
        f"{tool}: expected it to be installed ({PACKAGES}), found none" for tool in TOOLS if shutil.which(tool) is None
    ]
    free = shutil.disk_usage(place).free
    if free < SPACE_BYTES:
        lines.append(f"{place}: expected {SPACE_BYTES / 1e9:.1f} GB of free space, found {free / 1e9:.1f} GB")
    return lines


def _source(source: str) -> Path:
    """The tree or tarball that the user means."""
    path = Path(source)
    # A folder beside a user may have the name of a package: with "./" before it, it is the folder.
    is_package = re.fullmatch(r"linux-source-[\d.]+\d", source) is not None
    if path.exists() and not is_package:
        return path.resolve()
    for tarball in sorted(DEBIAN_SOURCES.glob("linux-source-*.tar.*")):
        if tarball.name.startswith(f"{source}.tar.") and tarball.is_file():
            return tarball
    if is_package:
        expected = DEBIAN_SOURCES / f"{source}.tar.xz"
        folder = f"; the folder here is ./{source}" if path.exists() else ""
        raise KernelError(f"{source}: expected {expected}, found none; apt-get install {source}{folder}")
    raise _core.ScenarioError(
        f"{source}: expected a kernel's tree, a tarball of one, or a package such as {DEFAULT}, found none"
    )


def _version(place: Path) -> str:
    """The version that the Makefile of a tree or tarball states."""
    expected = f"{place}: expected the source of a Linux kernel"
    if place.is_dir():
        makefile = place / "Makefile"
        text = makefile.read_text(encoding="utf-8", errors="replace") if makefile.is_file() else ""
    else:
        # Only the first, because the rest of a tarball takes seconds to read.
        names = ["--wildcards", "--no-wildcards-match-slash", "*/Makefile"]
        done = subprocess.run(
            ["tar", "--occurrence=1", "-xOf", str(place), *names],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise KernelError(f"{expected}, found what tar cannot read: {_last_line(done.stderr)}")
        text = done.stdout
    numbers = [re.search(rf"^{key} = (\d+)$", text, re.MULTILINE) for key in ("VERSION", "PATCHLEVEL", "SUBLEVEL")]
    if not all(numbers) or "KBUILD" not in text:
        raise KernelError(f"{expected}, with its version in the Makefile, found none")
    version = ".".join(number[1] for number in numbers if number)
    if _numbers(version)[:2] < OLDEST:
        raise KernelError(f"{expected} from {'.'.join(map(str, OLDEST))} on, found {version}")
    return version


def _unpack(place: Path, tree: Path) -> None:
    """Put the parts of the source that an image needs into `tree`."""
    unpack = ["tar", "-xC", str(tree)]
    if place.is_dir():
        rules = [f"--exclude={pattern}" for pattern in (*NOT_NEEDED, *BUILT)]
        with subprocess.Popen(["tar", "-cC", str(place), *rules, "."], stdout=subprocess.PIPE) as packed:
            done = subprocess.run(unpack, stdin=packed.stdout, capture_output=True, text=True, check=False)
    else:
        rules = [f"--exclude={pattern}" for pattern in NOT_NEEDED]
        done = subprocess.run(
            [*unpack, "-f", str(place), "--strip-components=1", *rules], capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        raise KernelError(
            f"{place}: expected the source of a kernel, found what tar cannot unpack: {_last_line(done.stderr)}"
        )


# Building.


def _add_driver(tree: Path, version: str) -> None:
    """Add the driver to a tree, and make the edits. Raises `KernelError` if the text of one is not there."""
    (tree / DRIVER).mkdir()
    for name, text in _core.kernel_sources(guest=True).items():
        (tree / DRIVER / name).write_text(text, encoding="utf-8")
    for edit in EDITS:
        path = tree / edit.file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if edit.unless is not None and edit.unless in text:
            continue
        if edit.old not in text:
            line = edit.old.strip().split("\n")[0]
            raise KernelError(
                f"{edit.file} of Linux {version}: expected the line {line!r}, which an edit changes, found none"
            )
        path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")


def _configure(tree: Path, version: str) -> None:
    """Configure a tree: our options, and nothing else that can be left out. Raises `KernelError` for options without effect."""
    fragment = tree / DRIVER / "config"
    _make(tree, version, f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig")
    configured = (tree / ".config").read_text(encoding="utf-8").split("\n")
    options = [line for line in fragment.read_text(encoding="utf-8").split("\n") if line.startswith("CONFIG_")]
    lost = [line for line in options if line not in configured]
    if not lost:
        return
    # A version need not have every option: only one that it has, and that does not hold, is an error.
    files = [path.read_text(encoding="utf-8", errors="replace") for path in tree.rglob("Kconfig*") if path.is_file()]
    known = set(re.findall(r"^\s*(?:menu)?config (\w+)", "\n".join(files), re.MULTILINE))
    lost = [line for line in lost if line.removeprefix("CONFIG_").partition("=")[0] in known]
    if lost:
        raise KernelError(
            f"Linux {version}: expected {', '.join(lost)} in its configuration, found another value or none"
        )


def _compile(tree: Path, version: str, progress: Progress) -> None:
    """Compile a configured tree with all processors."""
    done = 0

    def count(line: str) -> None:
        nonlocal done
        done += line.startswith(("  CC ", "  AS "))
        progress(min(done / OBJECTS, 0.99))

    _make(tree, version, f"-j{core_count()}", PROGRAM, heard=count)
    try:
        found = _output([str(tree / PROGRAM), "--version"]).strip()
    except OSError as error:
        found = str(error.strerror)
    if not found.startswith(version):
        raise KernelError(f"Linux {version}: expected an image that starts and tells its version, found {found!r}")


def _make(tree: Path, version: str, *words: str, heard: Callable[[str], object] = lambda _: None) -> None:
    """Run make in a tree, with low priority; `heard` gets each line of its output. No process of it outlives the call.

    Raises `KernelError` with the lines that tell of errors, or with the last lines, if it fails.
    """
    keep = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    process = subprocess.Popen(
        ["nice", "make", "-C", str(tree), "ARCH=um", *words],
        env={**keep, **REPEATABLE},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    # With several processors the lines with the error need not be the last.
    last: deque[str] = deque(maxlen=LOG_LINES)
    errors: list[str] = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            last.append(f"    {line.rstrip()}")
            if ERROR.search(line):
                errors.append(last[-1])
            heard(line)
        code = process.wait()
    finally:
        # Also the compilers that it started.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if code != 0:
        raise KernelError(
            "\n".join([f"Linux {version}: expected make {words[-1]} to succeed, found:", *(errors[:LOG_LINES] or last)])
        )


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False).stdout


def _last_line(text: str) -> str:
    return (text.strip() or "no reason").split("\n")[-1]
