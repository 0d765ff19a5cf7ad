"""`jmsish user`: the file of users of a broker, with salted keys in place of passwords."""

from __future__ import annotations

import argparse
import getpass
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jmsish.broker.config.users import SCRAM_KEYS, login_name
from jmsish.broker.users import User, Users
from jmsish.broker.users_file import ITERATIONS, format_users, make_user, parse_users
from jmsish.cli.parsing import CommandError, OneLineParser, add_command, positive
from jmsish.drivers.files import alone_with, replace_file

EPILOG = """\
examples:
  jmsish user add users.toml alice               asks for the password twice
  pass show broker/alice | jmsish user add users.toml alice
  jmsish user passwd users.toml alice            another password
  jmsish user verify users.toml alice            status 0 if that is the password, 1 if not
  jmsish user list users.toml
  jmsish user remove users.toml alice

The file holds salted keys for SCRAM-SHA-256 and SCRAM-SHA-512, from which no password can be read, is readable for its
owner alone, and is replaced as a whole. A broker reads it by its configuration, and again when it changes:

  [authentication]
  users_file = "users.toml"
"""

Users_ = dict[str, User]


def add_parser(commands: Any) -> None:
    parser: OneLineParser = commands.add_parser(
        "user",
        help="keep the file of users of a broker",
        description="Keep the file of users of a broker: names and salted keys.",
        epilog=EPILOG,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=OneLineParser)
    for name, action, text in (
        ("add", add, "add a user"),
        ("passwd", passwd, "give a user another password"),
        ("remove", remove, "remove a user"),
        ("verify", verify, "say whether a password is that of a user"),
        ("list", show, "print the names, and what there is of each"),
    ):
        each = add_command(actions, name, action, help=text, description=text[0].upper() + text[1:] + ".")
        each.add_argument("file", metavar="FILE", help="the file of users, TOML")
        if name != "list":
            each.add_argument("name", metavar="NAME", help="name of the user")
        if name in ("add", "passwd"):
            each.add_argument(
                "--iterations",
                metavar="N",
                type=positive,
                default=ITERATIONS,
                help=f"how much work a guess, and a login, is (default: {ITERATIONS})",
            )


def add(arguments: argparse.Namespace) -> int:
    _vacant(read(arguments.file, missing=True), arguments)  # before anybody is asked for a password
    return _set(arguments, new=True)


def passwd(arguments: argparse.Namespace) -> int:
    _known(read(arguments.file), arguments)
    return _set(arguments, new=False)


def _set(arguments: argparse.Namespace, *, new: bool) -> int:
    user = make_user(arguments.name, ask_password(twice=True), iterations=arguments.iterations)

    def put(users: Users_) -> None:
        if new:
            _vacant(users, arguments)
        before = users.get(arguments.name)
        users[arguments.name] = User(None, user.keys, before.certificate if before is not None else None)

    change(arguments.file, put)
    print(f"{arguments.name} is {'added to' if new else 'changed in'} {arguments.file}")
    return 0


def remove(arguments: argparse.Namespace) -> int:
    def take(users: Users_) -> None:
        _known(users, arguments)
        del users[arguments.name]

    change(arguments.file, take)
    print(f"{arguments.name} is removed from {arguments.file}")
    return 0


def verify(arguments: argparse.Namespace) -> int:
    users = Users(read(arguments.file))
    found = users.check(arguments.name, ask_password(twice=False))
    if (found() if callable(found) else found) is None:
        raise CommandError("name and password do not fit")  # no more is said to whoever tries them out
    print("the password is right")
    return 0


def show(arguments: argparse.Namespace) -> int:
    for name, user in sorted(read(arguments.file).items()):
        marks = [
            f"{mechanism} ({user.keys[mechanism].iterations} iterations)"
            for mechanism in SCRAM_KEYS.values()
            if mechanism in user.keys
        ]
        marks += ["password in the clear"] if user.password is not None else []
        marks += [f"certificate {user.certificate}"] if user.certificate is not None else []
        print(f"{name}\t{', '.join(marks)}")
    return 0


def _vacant(users: Users_, arguments: argparse.Namespace) -> None:
    for name in users:
        if name == arguments.name:
            raise CommandError(f"{arguments.file} has a user {name!r} already; `jmsish user passwd` changes it")
        if login_name(name) == login_name(arguments.name):
            text = f"{arguments.file} has a user {name!r}, and {arguments.name!r} is the same to a login, by SASLprep"
            raise CommandError(text)


def _known(users: Users_, arguments: argparse.Namespace) -> None:
    if arguments.name not in users:
        raise CommandError(f"{arguments.file} has no user {arguments.name!r}")


def read(path: str, *, missing: bool = False) -> Users_:
    """The users of a file; none where it is missing and may be."""
    try:
        return parse_users(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        if missing:
            return {}
        raise
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from None


def change(path: str, edit: Callable[[Users_], None]) -> None:
    """Read, edit and write with nobody between; the file is readable for its owner alone."""
    with alone_with(path):
        users = read(path, missing=True)
        edit(users)
        replace_file(path, format_users(users))


def ask_password(*, twice: bool) -> str:
    """From the terminal, unseen; from standard input, its first line in UTF-8, where that is no terminal."""
    if not sys.stdin.isatty():
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="strict")  # whatever the locale: a login is in UTF-8, too
        try:
            return sys.stdin.readline().rstrip("\r\n")
        except UnicodeDecodeError:
            raise CommandError("the password is not UTF-8") from None
    try:
        password = getpass.getpass("Password: ")
        again = getpass.getpass("Again: ") if twice else password
    except EOFError:
        raise CommandError("no password was given") from None
    if again != password:
        raise CommandError("the two are not the same")
    return password
