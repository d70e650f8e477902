"""Elephan's folders and files: identification, creation and replacement.

A folder belongs to Elephan if it has the document of a kind of results (`kinds`) that can be read. Unfinished output is in a
temporary folder beside its target. The name of that folder is `.elephan-` and 16 random digits. It contains:

- `lock`: held while the command runs; it names the writer and the target;
- `new`: the output, which is renamed to the target when it is complete;
- `old`: the folder that it replaces, until then.

A command that was killed leaves such a folder behind. The next command that writes beside it removes it, because its lock is
free. Nothing else is ever removed.
"""

import contextlib
import fcntl
import json
import os
import re
import secrets
import shutil
import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from elephan import _core
from elephan.base.kinds import RUN, Kind, documented
from elephan.base.text import file_name

TEMPORARY = re.compile(r"\.elephan-[0-9a-f]{16}")
LOCK = ".elephan-lock"
# Temporary folders from other machines are kept this long: without locks across machines, they may still be in use.
FOREIGN_S = 30 * 86400.0
# How long to wait for other commands that begin or end in the same folder.
PATIENCE_S = 2.0


def default(name: str) -> Path:
    """The default results folder without `--out`: a folder of this name within `results`."""
    return Path("results") / file_name(name)


# What may be replaced.


def _obstacle(folder: Path) -> str | None:  # noqa: PLR0911 - a return for each
    """The obstacle to replacing an existing folder; None if it only contains results that a command wrote."""
    if folder.is_symlink():
        return "a symbolic link"
    if not folder.is_dir():
        return "a file"
    here = folder.resolve()
    for place, what in ((Path.cwd(), "the current directory"), (Path.home(), "the home directory")):
        if here == place.resolve():
            return what
        if here in place.resolve().parents:
            return f"a folder that contains {what}"
    kind = documented(folder)
    if kind is not None and not kind.replaced:
        return f"the folder of {kind.what}, which is never replaced"
    try:
        found = _foreign(folder, kind)
    except _core.ScenarioError as error:
        return f"one that Elephan cannot identify as its own ({error})"
    if found is None:
        return None
    return f"{found.relative_to(folder)} in it, which Elephan did not write" if kind else f"{found.name} in it"


def _foreign(folder: Path, kind: Kind | None) -> Path | None:
    """The first entry of a folder with results of a kind that no command wrote. Raises as `Kind.load` does.

    Leftovers of killed commands are removed first, because a command also writes into its own results.
    """
    clear(folder)
    entries = sorted(folder.iterdir())
    if kind is None:
        return next(iter(entries), None)
    written = kind.written(kind.load(folder))
    for entry in entries:
        if entry.is_symlink():
            return entry
        if entry.is_dir():
            for one in sorted(entry.iterdir()) if entry.name == "runs" else [entry]:
                named = re.fullmatch(kind.inner, one.relative_to(folder).as_posix())
                if not named or one.is_symlink() or documented(one) is not RUN:
                    return one
                if found := _foreign(one, RUN):
                    return found
        elif not written.fullmatch(entry.name):
            return entry
    return None


def check_new(folder: Path, *, force: bool) -> None:
    """Refuse a folder that `new_folder` refuses. Raises `FileExistsError`."""
    if not os.path.lexists(folder):
        return
    found = _obstacle(folder)
    if found is not None:
        raise FileExistsError(
            f"{folder}: expected a new folder, or one of results for --force to replace; found {found}"
        )
    if not force and any(folder.iterdir()):
        raise FileExistsError(f"{folder}: expected a new folder, found one with results; --force replaces it")


def own_or_empty(folder: Path, kind: Kind) -> None:
    """Refuse a folder that is not empty, unless it has results of this kind.

    Raises `FileExistsError`, which names what was found, and `ScenarioError` if the document is damaged.
    """
    if not folder.is_dir():
        if os.path.lexists(folder):
            raise FileExistsError(f"{folder}: expected an empty folder or that of {kind.what}, found a file")
        return
    if (folder / kind.document).is_file():
        kind.load(folder)
        return
    # `jobs` has the batch system's output of the jobs that run a sweep.
    others = [path.name for path in folder.iterdir() if path.name not in (LOCK, "jobs") and not _is_temporary(path)]
    if others:
        raise FileExistsError(
            f"{folder}: expected an empty folder or that of {kind.what}, with {kind.document}; found {min(others)}"
        )


# Writing.


@contextlib.contextmanager
def new_folder(folder: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a folder to write into. It gets its final name when everything is written, and is removed on failure.

    With `force`, it replaces an existing results folder, which stays until the new one is complete. Raises `FileExistsError`
    if the target exists and `force` is not set, if it is not a results folder of Elephan, and if another command writes
    there. Any other error gets a note if nothing was written.
    """
    folder = Path(folder)
    place = folder.resolve() if folder.name in ("", "..") else folder.parent.resolve() / folder.name
    with _place(place, lambda: check_new(folder, force=force), f"nothing was written to {folder}") as new:
        new.mkdir()
        yield new
        for path in new.rglob("*"):
            if path.is_file():
                _sync(path)


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield a file to write. It replaces `path`, which is a file or does not exist, only when it is complete."""

    def check() -> None:
        if path.is_dir():
            raise FileExistsError(f"{path}: expected a file or none, found a folder")

    with _place(path, check) as new:
        try:
            yield new
            _sync(new)
        except OSError as error:
            # A full disk does not tell which file it had no room for.
            if error.errno is not None and error.filename is None:
                error.filename = str(path)
            raise


def clear(folder: Path) -> None:
    """Remove the leftovers of killed commands in a folder."""
    with _alone_in(folder) as alone:
        _others_in(folder, alone=alone)


@contextlib.contextmanager
def only_writer(folder: Path, what: str) -> Iterator[None]:
    """Make a folder, and prevent other commands from writing into it. Raises `FileExistsError` if one already does."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FileExistsError(f"{folder}: expected no other {what} that writes here, found one") from error
        yield


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _is_temporary(path: Path) -> bool:
    return TEMPORARY.fullmatch(path.name) is not None and path.is_dir() and not path.is_symlink()


@contextlib.contextmanager
def _place(target: Path, check: Callable[[], None], note: str | None = None) -> Iterator[Path]:
    """A temporary path `new` beside the target, renamed to it at the end; `check` refuses a target that may not be replaced."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(f"{error.filename}: expected a folder, found a file") from error
    own = target.parent / f".elephan-{secrets.token_hex(8)}"
    new, old = own / "new", own / "old"
    held: IO[str] | None = None
    is_whole = False
    try:
        with _alone_in(target.parent) as alone:
            for other in _others_in(target.parent, alone=alone):
                if other["target"] == target.name:
                    by = f"process {other['pid']} on {other['host']}"
                    raise FileExistsError(f"{target}: expected no other command that writes there, found {by}")
            check()
            own.mkdir(mode=0o700)
            held = _held(own, target)
        yield new
        with _alone_in(target.parent):
            check()
            is_whole = True
            # A file replaces a file, and a folder replaces an empty folder, in one step.
            if target.is_dir() and any(target.iterdir()):
                target.rename(old)
            new.rename(target)
    except BaseException as error:
        is_placed = is_whole and (old.exists() or not new.exists())
        if note is not None and not is_placed:
            error.add_note(note)
        if isinstance(error, OSError) and error.filename is not None:
            # The temporary name means nothing to the user.
            error.filename = str(error.filename).replace(str(new), str(target)).replace(str(own), str(target))
        raise
    finally:
        _settle(own, target)
        if held is not None:
            held.close()


def _held(own: Path, target: Path) -> IO[str]:
    file = (own / "lock").open("x", encoding="utf-8")
    # Some network file systems have no locks. Nothing is removed there.
    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX)
    file.write(
        json.dumps(
            {"elephan": _core.__version__, "host": socket.gethostname(), "pid": os.getpid(), "target": target.name}
        )
    )
    file.flush()
    return file


def _settle(own: Path, target: Path) -> None:
    """Finish with a temporary folder: complete output is moved to its target, and the rest is removed."""
    if not own.exists():
        return
    new, old = own / "new", own / "old"
    if old.exists() and new.exists():
        if os.path.lexists(target):
            # Another target was created in the meantime. The complete output for it stays where it is.
            return
        # The command ended between the two steps: the new output is complete.
        new.rename(target)
    for path in (new, old):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    # The lock is removed last, because it identifies the owner of the rest.
    if not (new.exists() or old.exists()):
        (own / "lock").unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            own.rmdir()


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[bool]:
    """Prevent other commands from beginning or ending in a folder, and return whether that succeeded.

    The lock is held only briefly. A holder that takes longer is ignored, and so is a file system without locks.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        alone, until = False, time.monotonic() + PATIENCE_S
        while not alone and time.monotonic() < until:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                alone = True
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                break
        yield alone
    finally:
        os.close(handle)


def _others_in(folder: Path, *, alone: bool) -> list[dict[str, Any]]:
    """The targets that other commands are writing in a folder. Leftovers of killed commands are removed."""
    found = []
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if TEMPORARY.fullmatch(entry.name)]
    for own in (folder / name for name in names):
        # What has disappeared or cannot be read is left to others.
        with contextlib.suppress(OSError):
            if _is_temporary(own) and (record := _look(own, alone=alone)) is not None:
                found.append(record)
    return found


def _look(own: Path, *, alone: bool) -> dict[str, Any] | None:
    """The writer of a temporary folder; None if there is none. The folder is then removed if it is known to be Elephan's."""
    inside = {path.name for path in own.iterdir()}
    if not inside and alone:
        # The command was killed right at its start.
        own.rmdir()
    if "lock" not in inside or not inside <= {"lock", "new", "old"}:
        return None
    # Others may write here: a pipe by that name would block, and is no lock.
    handle = os.open(own / "lock", os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, encoding="utf-8") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        record = _record(file.read())
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return record
        if record is None:
            if inside == {"lock"} and alone:
                (own / "lock").unlink()
                own.rmdir()
            return None
        is_old = time.time() - os.fstat(file.fileno()).st_mtime > FOREIGN_S
        if record["host"] != socket.gethostname() and not is_old:
            return record
        _settle(own, own.parent / record["target"])
        return None


def _record(text: str) -> dict[str, Any] | None:
    try:
        record = json.loads(text)
    except ValueError:
        return None
    known = isinstance(record, dict) and record.keys() >= {"elephan", "host", "pid", "target"}
    return record if known and Path(str(record["target"])).name == record["target"] else None
