"""Files that others may change while we run: noticed when looked at, and written so that nobody reads half of one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator

__all__ = ["Watched", "alone_with", "replace_file"]


class Watched:
    """Some files, and whether they are others than when it was last asked."""

    def __init__(self, *paths: str | None) -> None:
        self.paths = tuple(path for path in paths if path is not None)
        self._seen = self._look()

    def changed(self) -> bool:
        """Whether any of them was written, replaced or removed since the last call."""
        seen = self._look()
        if seen == self._seen:
            return False
        self._seen = seen
        return True

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(path) for path in self.paths]


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def replace_file(path: str, text: str, *, mode: int = 0o600) -> None:
    """Write a whole file: who reads it meanwhile, or after a crash, has the old one or the new one.

    The mode is ``mode``; the owner of a file that was there stays, where we may give files away. What is reached by a
    symbolic link is replaced where it is, and the link stays.
    """
    path = os.path.realpath(path)
    directory = os.path.dirname(os.path.abspath(path))
    handle, name = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=directory)
    try:
        with open(handle, "w", encoding="utf-8") as new:
            os.fchmod(handle, mode)
            with contextlib.suppress(OSError):
                old = os.stat(path)
                if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(handle, old.st_uid, old.st_gid)
            new.write(text)
            new.flush()
            os.fsync(handle)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


@contextlib.contextmanager
def alone_with(path: str) -> Iterator[None]:
    """Nobody else who asks for it changes a file of this directory meanwhile, so that no change is lost.

    What is reached by a symbolic link is changed where it is, and is alone there.
    """
    directory = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)
