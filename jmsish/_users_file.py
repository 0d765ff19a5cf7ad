"""The file of users of a running broker: read when it begins, and again when the file changes."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from jmsish.broker.users import User
from jmsish.broker.users_file import parse_users
from jmsish.drivers.files import Watched

_log = logging.getLogger("jmsish.broker")


class UsersFile:
    """Gives the users of a file to ``take``, now and whenever they are others. An empty path is no file.

    ``ValueError`` says what is wrong with the file.
    """

    def __init__(self, path: str, take: Callable[[Mapping[str, User]], None]) -> None:
        self._path = path
        self._take = take
        self._watched = Watched(path or None)
        self.reload()

    def reload(self) -> None:
        """Read it now, changed or not."""
        if not self._path:
            return
        self._watched.changed()
        try:
            users = parse_users(Path(self._path).read_text(encoding="utf-8"))
            mode = stat.S_IMODE(os.stat(self._path).st_mode)
        except OSError as error:
            raise ValueError(f"users_file {self._path!r}: {error.strerror or error}") from error
        except ValueError as error:
            raise ValueError(f"users_file {self._path!r}: {error}") from None
        if mode & 0o077:
            _log.warning("the file of users %s can be read by others than its owner (chmod 600)", self._path)
        self._take(users)

    def refresh(self) -> None:
        """Read it if it has changed; where it is no good the users stay as they were, with a warning."""
        if not self._watched.changed():
            return
        try:
            self.reload()
        except ValueError as error:
            _log.warning("the users stay as they were: %s", error)
        else:
            _log.info("the users of %s are read anew", self._path)
