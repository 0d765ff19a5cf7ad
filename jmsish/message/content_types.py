"""What a content type says about a body: whether it is text, and in which character set."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

_SHAPE = re.compile(r"\s*([\w.!#$&^+-]+)/([\w.!#$&^+-]+)\s*(?:;(.*))?", re.ASCII | re.DOTALL)
_CHARSET = re.compile(r"""(?:^|;)\s*charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^;\s]*))""", re.IGNORECASE)
# Codecs of Python's that make text of octets and are no character sets of any content type; some take quadratic time,
# so that a sender could keep its receiver busy for hours.
_NO_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined"})
_TEXTUAL = frozenset({"xml", "xml-dtd", "xml-external-parsed-entity", "json", "javascript", "ecmascript"})


@lru_cache(maxsize=256)
def charset_of(content_type: str | None) -> str | None:
    """The character set of a textual content type, UTF-8 where it names none; ``None`` if it is not textual.

    A character set that Python does not know, or that is none, makes it not textual: its octets can still be had.
    """
    shape = _SHAPE.fullmatch(content_type or "")
    if shape is None:
        return None
    main, sub, parameters = shape[1].lower(), shape[2].lower(), shape[3] or ""
    if main != "text" and not (main == "application" and (sub in _TEXTUAL or sub.endswith(("+xml", "+json")))):
        return None
    found = _CHARSET.search(parameters)
    charset = next(filter(None, found.groups()), "") if found else "utf-8"
    try:
        # Python's codecs are not all character sets: "hex" and the like refuse text.
        "a".encode(charset)
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return None
    return None if name in _NO_CHARSETS else name
