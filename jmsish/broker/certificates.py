"""Who a client's certificate says it is. The certificate is verified already, and comes as ``getpeercert`` gives it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jmsish.engine.mechanisms import CONTROL

COMMON_NAME: Final = "common-name"
SUBJECT: Final = "subject"
IDENTITIES: Final = (COMMON_NAME, SUBJECT, "email", "dns", "uri")
"""The common name, the whole subject (RFC 4514), or the first subject alternative name of a kind."""

_ALTERNATIVES: Final = {"email": "email", "dns": "DNS", "uri": "URI"}

_SHORT: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
"""The short names of RFC 4514, 3; others are written as OpenSSL calls them."""


def identity_of(certificate: Mapping[str, Any], kind: str) -> str | None:
    """The name of who shows this certificate; None where it has none of that kind.

    Of several common names it is the last, the most specific one; a name with a NUL or another control character in it
    is none.
    """
    if kind == SUBJECT:
        found = subject_text(certificate)
    elif kind == COMMON_NAME:
        parts = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
        found = parts[-1] if parts else ""
    else:
        wanted = _ALTERNATIVES[kind]
        found = next((value for key, value in certificate.get("subjectAltName", ()) if key == wanted), "")
    return found if found and not CONTROL.search(found) else None


def subject_text(certificate: Mapping[str, Any]) -> str:
    """The subject as RFC 4514 writes it, the most specific part first: ``CN=alice,OU=Sales,O=Example,C=DE``."""
    parts = [
        "+".join(f"{_SHORT.get(key, key)}={_escaped(value)}" for key, value in part)
        for part in certificate.get("subject", ())
    ]
    return ",".join(reversed(parts))


def _escaped(value: str) -> str:
    """RFC 4514, 2.4: what would be read as something else stands behind a backslash."""
    text = "".join(f"\\{letter}" if letter in '"+,;<>\\' else letter for letter in value)
    if text.startswith(("#", " ")):
        text = "\\" + text
    if text.endswith(" ") and len(value) > 1:
        text = text[:-1] + "\\ "
    return text
