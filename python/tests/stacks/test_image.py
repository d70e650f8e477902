"""Images of kernels: sources, edits and the cache, with small trees in place of a kernel's."""

import contextlib
import io
import json
import os
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from command_line import call

import elephan
from elephan import _core
from elephan.api.scenario import dumbbell, flow
from elephan.engines.run import run as simulate
from elephan.guest import image
from elephan.kernel import KernelError
from elephan.studies.sweeps import loop

MAKEFILE = "# KBUILD\nVERSION = {}\nPATCHLEVEL = {}\nSUBLEVEL = {}\nEXTRAVERSION =\n\n"
# A kernel of one object: its configuration is ours, and its image tells the version.
RULES = """\
allnoconfig:
\t@cp $(KCONFIG_ALLCONFIG) .config
linux:
\t@echo "  CC      init/main.o"
\t@printf '#!/bin/sh\\necho {}\\n' > linux; chmod +x linux
"""


# The build of a small tree needs fewer tools than that of a kernel.
ALL_TOOLS = image.TOOLS
TOOLS = tuple(tool for tool in ALL_TOOLS if tool not in ("flex", "bison", "bc"))
can_build = pytest.mark.skipif(
    platform.machine() != "x86_64" or any(shutil.which(tool) is None for tool in TOOLS),
    reason=f"needs x86-64 and {', '.join(TOOLS)}",
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(image, "TOOLS", TOOLS)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(image, "DEBIAN_SOURCES", tmp_path / "usr" / "src")
    monkeypatch.setattr(image, "SPACE_BYTES", 0)
    # A gate does not build them.
    monkeypatch.setattr(image, "INIT", Path(__file__))
    monkeypatch.setattr(image, "LINKS", Path(__file__))
    return tmp_path / "cache" / "elephan" / "kernels"


def small_tree(place: Path, version=(6, 12, 117), rules=RULES) -> Path:
    """A tree with the lines that are edited, and little else."""
    place.mkdir(parents=True)
    text = ".".join(map(str, version))
    (place / "Makefile").write_text(MAKEFILE.format(*version) + rules.replace("{}", text))
    for edit in image.EDITS:
        file = place / edit.file
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as out:
            out.write(f"before\n{edit.old}\nafter\n")
    (place / "init").mkdir()
    (place / "init" / "main.o").write_text("an object of another build")
    return place


def packed(tree: Path) -> Path:
    file = tree.parent / f"{tree.name}.tar.xz"
    subprocess.run(["tar", "-cJf", file, "-C", tree.parent, tree.name], check=True)
    return file


def all_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def entry(cache: Path, version: str, *, built="2026-01-01T00:00:00+00:00", guest=None, **keys) -> Path:
    """An image in the cache."""
    guest = guest or image._guest()
    folder = cache / f"{version}-{guest[:12]}"
    folder.mkdir(parents=True)
    (folder / "linux").write_text("#!/bin/sh\n")
    (folder / "linux").chmod(0o755)
    told = {"version": version, "digest": "0" * 64, "guest": guest, "compiler": "gcc", "built": built, **keys}
    (folder / "image.json").write_text(json.dumps(told))
    return folder


@can_build
def test_a_tree_and_a_tarball_are_built_and_left_as_they_are(tmp_path, cache):
    tree = small_tree(tmp_path / "linux")
    before = all_files(tree)
    shares = []
    made = image.build(str(tree), progress=shares.append)
    assert all_files(tree) == before
    assert (made.version, made.outdated) == ("6.12.117", False)
    assert made.path == cache / f"6.12.117-{image._guest()[:12]}" / "linux"
    assert sorted(path.name for path in made.path.parent.iterdir()) == ["image.json", "linux"]
    assert [path.name for path in cache.iterdir()] == [made.path.parent.name]
    assert shares == sorted(shares)
    assert shares[-1] < 1
    told = json.loads((made.path.parent / "image.json").read_text())
    assert told.keys() == {"version", "digest", "guest", "config", "compiler", "source", "elephan", "built"}
    assert image.find() == image.find("6.12") == image.find("6.12.117") == made

    # It is there already, unless it is built again.
    assert image.build(str(packed(tree))) == made
    made.path.write_text("#!/bin/sh\n# another\n")
    again = image.build(str(packed(tree)), force=True)
    assert again.path.read_text() == "#!/bin/sh\necho 6.12.117\n"


def test_the_driver_and_the_edits_enter_the_tree(tmp_path):
    tree = small_tree(tmp_path / "linux")
    image._add_driver(tree, "6.12.117")
    added = {path.name: path.read_text() for path in (tree / "drivers" / "elephan").iterdir()}
    assert added == _core.kernel_sources(guest=True)
    assert {"Kconfig", "Makefile", "config", "network.c", "elephan.h", "scalable.bpf.c"} <= added.keys()
    for edit in image.EDITS:
        text = (tree / edit.file).read_text()
        assert edit.new in text
        assert edit.old not in text.replace(edit.new, "")


def test_a_kernel_that_does_not_need_an_edit_stays_as_it_is(tmp_path):
    tree = small_tree(tmp_path / "linux", (6, 17, 0))
    file = tree / "arch/x86/um/os-Linux/registers.c"
    file.write_text("unsigned long host_fp_size;\n")
    image._add_driver(tree, "6.17.0")
    assert file.read_text() == "unsigned long host_fp_size;\n"


@can_build
@pytest.mark.parametrize("edit", image.EDITS, ids=lambda edit: edit.file)
def test_an_edit_without_its_place_is_an_error(edit, tmp_path, cache):
    tree = small_tree(tmp_path / "linux", (6, 99, 1))
    file = tree / edit.file
    file.write_text(file.read_text().replace(edit.old, "something else\n"))
    with pytest.raises(
        KernelError, match=f"{edit.file} of Linux 6.99.1: expected the line '.+', which an edit changes, found none"
    ):
        image.build(str(tree))
    assert list(cache.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6.1", "6.12"])
def test_the_edits_are_those_of_real_kernels(version, tmp_path):
    source = f"linux-source-{version}"
    if not Path(f"/usr/src/{source}.tar.xz").exists():
        pytest.skip(f"needs the package {source}")
    files = sorted({f"{source}/{edit.file}" for edit in image.EDITS})
    subprocess.run(["tar", "--occurrence=1", "-xf", f"/usr/src/{source}.tar.xz", "-C", tmp_path, *files], check=True)
    image._add_driver(tmp_path / source, version)


@can_build
def test_what_is_no_source_is_refused(tmp_path, cache):
    def error(source) -> str:
        with pytest.raises((KernelError, elephan.ScenarioError)) as caught:
            image.build(str(source))
        assert not cache.exists() or list(cache.iterdir()) == []
        return str(caught.value)

    assert error("linux-source-6.12").endswith(
        "linux-source-6.12.tar.xz, found none; apt-get install linux-source-6.12"
    )
    assert "expected a kernel's tree, a tarball of one, or a package such as linux-source-6.12, found none" in error(
        "6.12"
    )
    assert "with its version in the Makefile, found none" in error(tmp_path)
    (tmp_path / "text.txt").write_text("no tarball")
    assert "found what tar cannot read" in error(tmp_path / "text.txt")
    assert "expected the source of a Linux kernel from 6.1 on, found 5.15.3" in error(
        small_tree(tmp_path / "old", (5, 15, 3))
    )
    file = packed(small_tree(tmp_path / "linux"))
    file.write_bytes(file.read_bytes()[:-200])
    assert "found what tar cannot" in error(file)
    other = tmp_path / "other.tar"
    with tarfile.open(other, "w") as out:
        out.addfile(tarfile.TarInfo("other/Makefile"), io.BytesIO())
    assert "with its version in the Makefile, found none" in error(other)


@can_build
def test_the_tarball_of_a_package_is_found(tmp_path):
    file = packed(small_tree(tmp_path / "usr" / "src" / "linux-source-6.12"))
    shutil.rmtree(tmp_path / "usr" / "src" / "linux-source-6.12")
    assert file.parent == image.DEBIAN_SOURCES
    assert image.build().version == "6.12.117"


@can_build
def test_a_folder_is_not_taken_for_a_package(tmp_path, monkeypatch):
    small_tree(tmp_path / "linux-source-6.12")
    monkeypatch.chdir(tmp_path)
    # Nor is one beside the packages' tarballs.
    (image.DEBIAN_SOURCES / "linux-source-6.12.tar.d").mkdir(parents=True)
    with pytest.raises(
        KernelError, match=r"found none; apt-get install linux-source-6.12; the folder here is \./linux"
    ):
        image.build("linux-source-6.12")
    assert image.build("./linux-source-6.12").version == "6.12.117"


def test_a_machine_that_cannot_build_is_told_what_it_lacks(tmp_path, cache, monkeypatch):
    monkeypatch.setattr(image, "TOOLS", ALL_TOOLS)
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool in ("flex", "bc") else tool)
    monkeypatch.setattr(image.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: os.terminal_size((0, 0)) and type("Usage", (), {"free": 5e8}))
    monkeypatch.setattr(image, "SPACE_BYTES", 10**9)
    monkeypatch.setattr(image, "INIT", tmp_path / "elephan-init")
    with pytest.raises(KernelError) as caught:
        image.build("linux-source-6.12")
    package = tmp_path / "usr/src/linux-source-6.12.tar.xz"
    assert str(caught.value).splitlines() == [
        f"{tmp_path}/elephan-init: expected a file of this package, found none; in a source tree `make guest` builds it",
        "machine: expected Linux on x86_64, found Linux on aarch64",
        f"flex: expected it to be installed ({image.PACKAGES}), found none",
        f"bc: expected it to be installed ({image.PACKAGES}), found none",
        f"{cache}: expected 1.0 GB of free space, found 0.5 GB",
        f"linux-source-6.12: expected {package}, found none; apt-get install linux-source-6.12",
    ]


@can_build
@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (RULES.replace("echo {}", "echo 5.1"), "expected an image that starts and tells its version, found '5.1'"),
        (
            RULES.replace("@echo", "@echo 'a.c:1: error: no such thing'; false"),
            "expected make linux to succeed, found:\n    a.c:1: error: no such thing\n",
        ),
        (
            RULES.replace("@printf", "@echo No space left on device; exit 1; echo"),
            "expected make linux .*\n.*No space left on device",
        ),
        (
            RULES.replace("@cp", "@sed '/CONFIG_INET=/d'").replace(" .config", " > .config"),
            "expected CONFIG_INET=y in its",
        ),
    ],
)
def test_a_build_that_fails_leaves_nothing(rules, expected, tmp_path, cache):
    tree = small_tree(tmp_path / "linux", rules=rules)
    (tree / "Kconfig").write_text("config INET\n\tbool\n")
    with pytest.raises(KernelError, match=f"(?s)Linux 6.12.117: {expected}"):
        image.build(str(tree))
    assert list(cache.iterdir()) == []


@can_build
def test_an_option_that_a_version_lacks_is_left_out(tmp_path):
    rules = RULES.replace("@cp", "@sed '/CONFIG_MEMBARRIER=/d'").replace(" .config", " > .config")
    assert image.build(str(small_tree(tmp_path / "linux", rules=rules))).version == "6.12.117"


@can_build
def test_an_interrupted_build_goes_on(tmp_path, cache):
    # The recipe tells its process, and would go on for a minute, but only once.
    rules = RULES.replace('@echo "  CC ', f'@echo >> compiled; echo $$$$ > {tmp_path}/process; echo "  CC ').replace(
        "@printf", "@test $$(wc -l < compiled) = 2 || sleep 60; printf"
    )
    tree = small_tree(tmp_path / "linux", rules=rules)

    def stop(_):
        if (tmp_path / "process").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        image.build(str(tree), progress=stop)
    assert caught.value.__notes__ == ["the same command goes on where it was"]
    assert image.images() == []
    assert not [process for process in Path("/proc").glob("[0-9]*") if str(cache) in _command_line(process)]
    # What was compiled is still there.
    assert list(cache.glob("build-*/tree/compiled")) != []
    shares = []
    made = image.build(str(tree), progress=shares.append)
    assert shares[0] == image.CONFIGURED
    assert [path.name for path in cache.iterdir()] == [made.path.parent.name]


@can_build
def test_an_interrupted_build_of_another_source_begins_again(tmp_path):
    tree = small_tree(tmp_path / "linux")

    def stop(share):
        if share >= image.CONFIGURED:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        image.build(str(tree), progress=stop)
    (tree / "new.c").write_text("new")
    shares = []
    image.build(str(tree), progress=shares.append)
    assert shares[0] == image.UNPACKED


def _command_line(process: Path) -> str:
    """The words of a process; none if it has ended."""
    with contextlib.suppress(OSError):
        return (process / "cmdline").read_text()
    return ""


def test_the_newest_image_of_a_version_is_found(cache):
    for version in ("6.1.192", "6.12.9", "6.12.117"):
        entry(cache, version)
    entry(cache, "6.12.118", guest="f" * 64)
    assert [(one.version, one.outdated) for one in image.images()] == [
        ("6.12.118", True),
        ("6.12.117", False),
        ("6.12.9", False),
        ("6.1.192", False),
    ]
    assert image.find().version == image.find("6.12").version == "6.12.117"
    assert image.find("6.1").version == "6.1.192"
    assert image.find("6.12.9").version == "6.12.9"
    with pytest.raises(
        KernelError,
        match=r"kernel.version: expected an image of Linux 6.12.118, found one for another version of Elephan; "
        r"`elephan kernel build linux-source-6.12` builds it, which takes 4 minutes .* and 0.6 GB of disk",
    ):
        image.find("6.12.118")
    with pytest.raises(
        KernelError,
        match=r"expected an image of Linux 6.6, found those of 6.12.117, 6.12.9, 6.1.192; `.* linux-source-6.6`",
    ):
        image.find("6.6")


def test_damaged_images_are_none(cache):
    assert image.images() == []
    with pytest.raises(
        KernelError, match=r"expected an image of a kernel, found none; `elephan kernel build linux-source-6.12`"
    ):
        image.find()
    (entry(cache, "6.1.1") / "linux").unlink()
    (entry(cache, "6.1.2") / "linux").chmod(0o644)
    (entry(cache, "6.1.3") / "image.json").write_text("{")
    (entry(cache, "6.1.4") / "image.json").write_text("[]")
    (entry(cache, "6.1.5") / "image.json").write_text('{"version": "6.1.5"}')
    entry(cache, "6.1.x")
    assert image.images() == []


def test_a_scenario_names_its_kernel_and_a_sweep_several(cache, monkeypatch):
    # What runs in a guest is not needed without an image.
    monkeypatch.setattr(image, "INIT", Path(__file__))
    monkeypatch.setattr(image, "LINKS", Path(__file__))
    keys = {"rate": "10 Mbit/s", "rtt": "20 ms", "flows": [flow("reno")], "duration": "1 s", "engine": "kernel"}
    scenario = dumbbell(**keys, kernel={"version": "6.1"})
    assert scenario.document["kernel"] == {"version": "6.1"}
    with pytest.raises(KernelError, match=r"expected an image of Linux 6.1, found none"):
        simulate(scenario)
    assert scenario.with_settings({"kernel.version": "6.10"}).document["kernel"] == {"version": "6.10"}
    with pytest.raises(elephan.ScenarioError, match=r'kernel.version: expected engine = "kernel" with it'):
        scenario.with_settings({"engine": "sim"})

    sweep = dumbbell(**keys, sweep={"kernel.version": ["6.1", "6.12"]})
    assert [point.document["kernel"]["version"] for point, _ in sweep.expand()] == ["6.1", "6.12"]
    entry(cache, "6.1.192")
    found = [loop._kernel(json.dumps(point.document, separators=(",", ":"))) for point, _ in sweep.expand()[:1]]
    assert found == [f" on Linux 6.1.192 {'0' * 16}, {image.programs()}"]


def test_what_runs_in_a_guest_is_part_of_a_runs_identity(tmp_path, monkeypatch):
    init = tmp_path / "init"
    monkeypatch.setattr(image, "INIT", init)
    digests = []
    for content in (None, b"one", b"other", b"one"):
        if content:
            init.write_bytes(content)
        image.programs.cache_clear()
        digests.append(image.programs())
    image.programs.cache_clear()
    assert digests[1] == digests[3]
    assert len(set(digests)) == 3


def test_the_command_line_builds_and_lists_images(tmp_path, cache):
    done = call("kernel", "images")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("kernel.version: expected an image of a kernel, found none; `elephan kernel build")
    done = call("kernel", "build", str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("expected the source of a Linux kernel, with its version in the Makefile, found none\n")
    entry(cache, "6.1.192")
    entry(cache, "6.1.191", guest="f" * 64)
    lines = call("kernel", "images").stdout.splitlines()
    assert any("6.1.192" in line and " yes " in line for line in lines)
    assert any("6.1.191" in line and "outdated: build it again" in line for line in lines)
    # It is there: nothing is built.
    done = call("kernel", "build", str(small_tree(tmp_path / "linux", (6, 1, 192))))
    assert done.stdout.startswith(f"Linux 6.1.192: {cache}")


@pytest.mark.slow
@pytest.mark.skipif(
    "ELEPHAN_BUILD_KERNEL" not in os.environ, reason="takes minutes; ELEPHAN_BUILD_KERNEL=linux-source-6.12 asks for it"
)
def test_a_real_kernel_is_built(monkeypatch):
    monkeypatch.setattr(image, "DEBIAN_SOURCES", Path("/usr/src"))
    monkeypatch.setattr(image, "TOOLS", ALL_TOOLS)
    made = image.build(os.environ["ELEPHAN_BUILD_KERNEL"])
    assert made.path.stat().st_size > 1e6
