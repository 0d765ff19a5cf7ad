"""The grammar of selectors (JMS 3.1, 3.8.1.1), and the tree that comes of a text.

Conditions and arithmetic share one set of rules, since parentheses and identifiers may be either; what may stand where
is checked as the tree grows (`growth`). The parser is a table with a stack of its own: nothing calls itself.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jmsish.selector.faults import Fault
from jmsish.selector.growth import Growth, check_condition
from jmsish.selector.tokens import Token, tokens
from jmsish.selector.tree import Node

if TYPE_CHECKING:
    from lark import Lark

# Rule 193: each rule binds tighter than the one above it.
_GRAMMAR = """
?start: either

?either: both
    | either OR both                            -> either
?both: negation
    | both AND negation                         -> both
?negation: predicate
    | NOT negation                              -> negation
?predicate: sum
    | sum COMPARISON sum                        -> comparison
    | sum BETWEEN sum AND sum                   -> between
    | sum NOT BETWEEN sum AND sum               -> between
    | sum IN OPEN strings CLOSE                 -> in_list
    | sum NOT IN OPEN strings CLOSE             -> in_list
    | sum LIKE STRING                           -> like
    | sum LIKE STRING ESCAPE STRING             -> like
    | sum NOT LIKE STRING                       -> like
    | sum NOT LIKE STRING ESCAPE STRING         -> like
    | sum IS NULL                               -> is_null
    | sum IS NOT NULL                           -> is_null
strings: STRING                                 -> first_string
    | strings COMMA STRING                      -> next_string
?sum: product
    | sum PLUS product                          -> sum
    | sum MINUS product                         -> sum
?product: signed
    | product STAR signed                       -> product
    | product SLASH signed                      -> product
?signed: operand
    | MINUS signed                              -> signed
    | PLUS signed                               -> signed
?operand: NUMBER                                -> number
    | STRING                                    -> string
    | TRUE                                      -> boolean
    | FALSE                                     -> boolean
    | NAME                                      -> identifier
    | OPEN either CLOSE                         -> group

%declare AND BETWEEN CLOSE COMMA COMPARISON ESCAPE FALSE IN IS LIKE MINUS NAME NOT NULL NUMBER OPEN OR PLUS SLASH STAR
%declare STRING TRUE
"""

_SHOWN = {"COMMA": "','", "CLOSE": "')'", "OPEN": "'('", "STRING": "a string", "$END": "the end"}
_ARITHMETIC = frozenset({"PLUS", "MINUS", "STAR", "SLASH"})


def parse(text: str) -> Node:
    """The tree of a selector; ``InvalidSelectorError`` where it has a fault."""
    try:
        tree: Node = _feed(_parser(), tokens(text), len(text))
        check_condition(tree, "a selector is a condition")
        return tree
    except Fault as found:
        raise found.error(text) from None


@lru_cache(maxsize=1)
def _parser() -> Lark:
    """Built when the first selector is read: who has no selectors does not wait for lark."""
    from lark import Lark

    return Lark(_GRAMMAR, parser="lalr", lexer="basic", transformer=Growth())


def _feed(parser: Lark, words: list[Token], end: int) -> Any:
    from lark.exceptions import UnexpectedToken

    if not words:
        raise Fault("an empty selector; None stands for none", 0)
    # Lark looks at the type of a token and hands the rest on, so ours will do.
    reading: Any = parser.parse_interactive()
    feed = reading.feed_token
    try:
        for word in words:
            feed(word)
        return reading.feed_eof()
    except UnexpectedToken as unexpected:
        raise _unexpected(unexpected.token, reading.accepts(), words, end) from None


def _unexpected(token: Any, expected: set[str], words: list[Token], end: int) -> Fault:
    """What stands where something else was expected."""
    what = _wanted(expected)
    if token.type == "$END":
        unclosed = _unclosed(words)
        if unclosed is not None and "CLOSE" in expected:
            return Fault("a parenthesis that is not closed", unclosed)
        return Fault(f"the selector ends where {what} is expected", end)
    if token.type == "CLOSE" and "$END" in expected:
        return Fault("a ')' without its '('", token.position)
    if token.type == "NULL" and "NAME" in expected:
        return Fault("NULL is no value: write IS NULL, or IS NOT NULL", token.position)
    shown = token.text if len(token.text) <= 40 else token.text[:40] + "…"
    return Fault(f"{shown} where {what} is expected", token.position)


def _wanted(expected: set[str]) -> str:
    if "NAME" in expected:
        return "an identifier, a literal or '('"
    if "COMPARISON" in expected:
        return "an operator"
    # Behind the first half of BETWEEN arithmetic may go on, but what is missing is AND.
    names = sorted(_SHOWN.get(name, name) for name in expected if name not in _ARITHMETIC)
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _unclosed(words: list[Token]) -> int | None:
    """The offset of the innermost parenthesis that is open at the end."""
    opened: list[int] = []
    for word in words:
        if word.type == "OPEN":
            opened.append(word.position)
        elif word.type == "CLOSE" and opened:
            opened.pop()
    return opened[-1] if opened else None
