"""The tree of a selector as it grows: called by the parser for each rule, with what the rule is made of.

What may stand where is checked here, so that a selector which could never be true because of the types in it is
refused when it is made (rule 181): a number joined by AND, a string that is added, an order of strings (rule 191).
"""

from __future__ import annotations

from typing import Any

from jmsish.selector import literals
from jmsish.selector.faults import Fault
from jmsish.selector.like import PATTERN_LIMIT
from jmsish.selector.names import check_name
from jmsish.selector.tokens import Token
from jmsish.selector.tree import (
    Arithmetic,
    Between,
    Both,
    Comparison,
    Either,
    Identifier,
    InList,
    IsNull,
    Like,
    Literal,
    Node,
    Not,
    Signed,
)

__all__ = ["Growth", "check_condition"]


def _kind(node: Node) -> str:
    """What a node is known to be: what an identifier stands for is known only with a message."""
    if isinstance(node, Literal):
        return "boolean" if isinstance(node.value, bool) else "string" if isinstance(node.value, str) else "number"
    if isinstance(node, Identifier):
        return "identifier"
    return "number" if isinstance(node, (Arithmetic, Signed)) else "condition"


def check_condition(node: Node, why: str) -> None:
    """Refuse what can be neither true nor false."""
    _check_beyond(node)
    if (kind := _kind(node)) in ("number", "string"):
        raise Fault(f"a {kind} where a condition is expected: {why}", node.position)


def _check_number(node: Node, why: str) -> None:
    _check_beyond(node)
    if (kind := _kind(node)) not in ("number", "identifier"):
        raise Fault(f"a {kind} where a number is expected: {why}", node.position)


def _check_beyond(node: Node) -> None:
    if isinstance(node, Literal) and node.value == literals.BEYOND_LONG and not isinstance(node.value, float):
        raise Fault(f"an integer beyond 64 bits: {literals.LONG_MAX} is the largest", node.position)


def _name_of(node: Node, operator: str) -> str:
    if not isinstance(node, Identifier):
        raise Fault(f"{operator} takes an identifier on its left", node.position)
    return node.name


def _negated(node: Node, parts: list[Any]) -> Node:
    """Rule 194, and likewise for IN and LIKE: with NOT an operator is its own negation."""
    return Not(node, node.position) if parts[1].type == "NOT" else node


class Growth:
    """One method for each rule of the grammar. It keeps nothing between two calls: all threads share one."""

    # -- operands ------------------------------------------------------------------------------------------------------

    def number(self, parts: list[Token]) -> Node:
        return Literal(literals.number(parts[0]), parts[0].position)

    def string(self, parts: list[Token]) -> Node:
        return Literal(literals.string(parts[0]), parts[0].position)

    def boolean(self, parts: list[Token]) -> Node:
        return Literal(parts[0].type == "TRUE", parts[0].position)

    def identifier(self, parts: list[Token]) -> Node:
        check_name(parts[0].text, parts[0].position)
        return Identifier(parts[0].text, parts[0].position)

    def group(self, parts: list[Any]) -> Node:
        # What is in parentheses is no literal any more: -(9223372036854775808) is beyond 64 bits in Java too.
        _check_beyond(parts[1])
        inside: Node = parts[1]
        return inside

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    def signed(self, parts: list[Any]) -> Node:
        sign, operand = parts
        number = isinstance(operand, Literal) and type(operand.value) in (int, float)
        # The least long is written as the negative of a number beyond the longs; its own negative is no literal.
        if sign.type == "MINUS" and number and operand.value != -literals.BEYOND_LONG:
            return Literal(-operand.value, sign.position)
        _check_number(operand, "a sign stands before a number")
        return Signed(sign.type == "MINUS", operand, sign.position)

    def sum(self, parts: list[Any]) -> Node:
        return self._arithmetic(parts, "+-")

    def product(self, parts: list[Any]) -> Node:
        return self._arithmetic(parts, "*/")

    def _arithmetic(self, parts: list[Any], level: str) -> Node:
        left, operator, right = parts
        for operand in (left, right):
            _check_number(operand, f"{operator.text} joins numbers")
        # A chain is one node however long it is: evaluating it takes a loop and no depth.
        if isinstance(left, Arithmetic) and left.rest[0][0] in level:
            left.rest.append((operator.text, right))
            return left
        return Arithmetic(left, [(operator.text, right)], left.position)

    # -- predicates ----------------------------------------------------------------------------------------------------

    def comparison(self, parts: list[Any]) -> Node:
        left, operator, right = parts
        for operand in (left, right):
            _check_beyond(operand)
            if operator.text not in ("=", "<>"):
                _check_number(operand, f"{operator.text} orders numbers; strings and booleans have only = and <>")
        return Comparison(operator.text, left, right, left.position)

    def between(self, parts: list[Any]) -> Node:
        operand, low, high = parts[0], parts[-3], parts[-1]
        for part in (operand, low, high):
            _check_number(part, "BETWEEN takes numbers")
        return _negated(Between(operand, low, high, operand.position), parts)

    def first_string(self, parts: list[Token]) -> list[str]:
        return [literals.string(parts[0])]

    def next_string(self, parts: list[Any]) -> list[str]:
        found: list[str] = parts[0]
        found.append(literals.string(parts[2]))
        return found

    def in_list(self, parts: list[Any]) -> Node:
        name = _name_of(parts[0], "IN")
        return _negated(InList(name, frozenset(parts[-2]), parts[0].position), parts)

    def like(self, parts: list[Any]) -> Node:
        name = _name_of(parts[0], "LIKE")
        texts = [part for part in parts[1:] if part.type == "STRING"]
        pattern, escape = literals.string(texts[0]), None
        if len(pattern) > PATTERN_LIMIT:
            raise Fault(f"a pattern of {len(pattern)} characters: the limit is {PATTERN_LIMIT}", texts[0].position)
        if len(texts) == 2:
            escape = literals.string(texts[1])
            if len(escape) != 1:
                raise Fault("ESCAPE takes a string of one character", texts[1].position)
            if _ends_escaping(pattern, escape):
                raise Fault(f"the pattern ends with {escape!r}, which has nothing to escape", texts[0].position)
        return _negated(Like(name, pattern, escape, parts[0].position), parts)

    def is_null(self, parts: list[Any]) -> Node:
        return IsNull(_name_of(parts[0], "IS"), parts[2].type == "NOT", parts[0].position)

    # -- conditions ----------------------------------------------------------------------------------------------------

    def negation(self, parts: list[Any]) -> Node:
        check_condition(parts[1], "NOT turns a condition round")
        return Not(parts[1], parts[0].position)

    def both(self, parts: list[Any]) -> Node:
        left, _, right = parts
        for operand in (left, right):
            check_condition(operand, "AND joins conditions")
        if isinstance(left, Both):
            left.items.append(right)
            return left
        return Both([left, right], left.position)

    def either(self, parts: list[Any]) -> Node:
        left, _, right = parts
        for operand in (left, right):
            check_condition(operand, "OR joins conditions")
        if isinstance(left, Either):
            left.items.append(right)
            return left
        return Either([left, right], left.position)


def _ends_escaping(pattern: str, escape: str) -> bool:
    """Whether the last character escapes: an odd number of escapes at the end."""
    return (len(pattern) - len(pattern.rstrip(escape))) % 2 == 1
