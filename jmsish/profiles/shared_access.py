"""Shared access signatures of Azure Service Bus: connection strings, and tokens made from a key.

A connection string is ``Endpoint=sb://HOST/;SharedAccessKeyName=NAME;SharedAccessKey=KEY[;EntityPath=…]``, as the
portal shows it.  A token says that who has the key lets its bearer use an address until some second of the epoch.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import parse_qs, quote_plus, urlsplit

__all__ = ["AccessKey", "expiry_of", "is_connection_string", "read_connection_string", "type_of"]

SAS_TOKEN = "servicebus.windows.net:sastoken"
WEB_TOKEN = "jwt"
"""The types of tokens that the node ``$cbs`` takes."""

_SIGNATURE = "SharedAccessSignature "


@dataclass(frozen=True, slots=True)
class AccessKey:
    """The name of a key, and the key."""

    name: str
    key: str = field(repr=False)

    def token(self, audience: str, expiry: int) -> str:
        """A token for an audience, such as ``amqp://HOST/QUEUE``, that holds until `expiry` (seconds of the epoch)."""
        resource = quote_plus(audience)
        signed = hmac.new(self.key.encode(), f"{resource}\n{expiry}".encode(), sha256).digest()
        signature = quote_plus(base64.b64encode(signed))
        return f"{_SIGNATURE}sr={resource}&sig={signature}&se={expiry}&skn={quote_plus(self.name)}"


def type_of(token: str) -> str:
    """Which type of token this is: a shared access signature, or else a web token (JWT)."""
    return SAS_TOKEN if token.startswith(_SIGNATURE) else WEB_TOKEN


def expiry_of(token: str) -> int | None:
    """Until when a token holds, in seconds of the epoch; None where it does not say."""
    if token.startswith(_SIGNATURE):
        found = parse_qs(token.removeprefix(_SIGNATURE)).get("se")
        return int(found[0]) if found and found[0].isascii() and found[0].isdigit() else None
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004  # header, claims, signature
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error):
        return None
    expiry = claims.get("exp") if isinstance(claims, dict) else None
    return int(expiry) if isinstance(expiry, (int, float)) and not isinstance(expiry, bool) else None


def is_connection_string(text: str) -> bool:
    return text.partition("=")[0].strip().lower() in ("endpoint", "sharedaccesskeyname", "sharedaccesskey")


def read_connection_string(text: str) -> tuple[str, str, str]:
    """Host, key name and key. `ValueError` says what is missing, and shows no key."""
    fields: dict[str, str] = {}
    for part in filter(None, text.split(";")):
        name, _, value = part.partition("=")
        fields[name.strip().lower()] = value.strip()
    for wanted in ("Endpoint", "SharedAccessKeyName", "SharedAccessKey"):
        if not fields.get(wanted.lower()):
            raise ValueError(f"the connection string has no {wanted}")
    host = urlsplit(fields["endpoint"]).hostname
    if not host:
        raise ValueError(f"the Endpoint of the connection string is no sb://HOST/: {fields['endpoint']!r}")
    return host, fields["sharedaccesskeyname"], fields["sharedaccesskey"]
