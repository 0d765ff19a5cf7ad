"""Client ids: which may be asked for, and the open that says one to the broker."""

from __future__ import annotations

from typing import Any

from jmsish.engine.conditions import PeerLimitError
from jmsish.engine.engine import Engine
from jmsish.errors import InvalidClientIDError
from jmsish.option_kinds import HALF_CHARACTER


def check_client_id(client_id: Any) -> str:
    """A client id that may be asked for.  Raises `InvalidClientIDError` for an empty one, and for none."""
    if client_id is not None and not isinstance(client_id, str):
        raise TypeError(f"a client id is a str, not {type(client_id).__name__}")
    if not client_id:
        raise InvalidClientIDError("a client id is a text of at least one character")
    if HALF_CHARACTER.search(client_id):
        raise InvalidClientIDError("a client id has no lone surrogates, which nothing can be made of")
    return client_id


def say_open(engine: Engine) -> None:
    """Write our open.  Raises `InvalidClientIDError` where the names in it are longer than the first frame may be."""
    try:
        engine.open()
    except PeerLimitError as error:
        text = f"the client id is too long, beside the name of the host or virtual host: {error}"
        raise InvalidClientIDError(text, scope="connection") from error
