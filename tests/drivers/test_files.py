"""Files that change while we run."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

import pytest

from jmsish.drivers.files import Watched, alone_with, replace_file
from jmsish.drivers.loopback import is_loopback


def test_a_change_is_noticed_once(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("a")
    watched = Watched(str(one), None, str(two))
    assert not watched.changed()
    replace_file(str(one), "b")
    assert watched.changed() and not watched.changed()
    two.write_text("x")
    assert watched.changed() and not watched.changed()
    two.unlink()
    assert watched.changed() and not watched.changed()


def test_a_file_is_replaced_as_a_whole_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    with path.open() as held:
        replace_file(str(path), "new")
        assert held.read() == "old"
    assert path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_behind_a_symbolic_link_is_replaced_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    kept, link = tmp_path / "kept" / "users.toml", tmp_path / "users.toml"
    kept.write_text("old")
    link.symlink_to(kept)
    replace_file(str(link), "new")
    assert link.is_symlink() and kept.read_text() == "new" and os.listdir(tmp_path / "kept") == ["users.toml"]


def test_what_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        replace_file(str(path), "\ud800")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["file"]


def test_alone_with_a_file_leaves_no_trace(tmp_path: Path) -> None:
    with alone_with(str(tmp_path / "file")):
        assert os.listdir(tmp_path) == []


def test_who_comes_by_a_link_is_alone_where_the_file_is(tmp_path: Path) -> None:
    """`jmsish user add` by the file and by a link to it at once lost one of the two."""
    real, other = tmp_path / "real", tmp_path / "other"
    real.mkdir(), other.mkdir()
    (real / "file").write_text("")
    (other / "link").symlink_to(real / "file")
    with alone_with(str(other / "link")):
        directory = os.open(real, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(directory)


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True), ("LOCALHOST", True), ("localhost.", False), ("a.localhost", False),
        ("127.0.0.1", True), ("127.9.9.9", True),
        ("::1", True), ("[::1]", True), ("::ffff:127.0.0.1", True), ("0.0.0.0", False), ("::", False), ("", False),
        ("10.0.0.1", False), ("localhost.example", False), ("notlocalhost", False), ("fe80::1%lo", False),
    ],
)  # fmt: skip
def test_what_is_this_machine(host: str, here: bool) -> None:
    assert is_loopback(host) is here
