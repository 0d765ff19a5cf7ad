"""Topic words: how keys and patterns are split, and a tree that finds all patterns that match a key.

A word may be empty. ``*`` alone in a word stands for exactly one word, ``#`` alone for any number, none included;
beside other characters both are ordinary (exchanges and policy, 1.5). One matcher serves all that has patterns.

Theory of operation.  The tree is persistent: to add or remove a pattern makes a new tree that shares all but one path
with the old, so whoever holds the old one goes on reading it undisturbed. A key is followed through the tree word by
word, all branches at once: a set of nodes becomes the set of their successors. Nothing is ever tried twice, so a
pattern costs at most its own length for each word of the key, however many ``#`` it has.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
V = TypeVar("V")

ONE: Final = "*"
ANY: Final = "#"
LONGEST: Final = 256
"""Words that a pattern or a key may have: what bounds the cost of a malicious pattern for a malicious key."""
_FILLED: Final = 4


def words_of(key: str) -> list[str]:
    """The words of a key or pattern; the empty string is one empty word."""
    return key.split(".")


def normalised(pattern: str) -> str:
    """The one spelling of all patterns that say the same: in each run of wildcards the stars first, then one hash.

    ``ValueError`` for a pattern of more than 256 words.
    """
    words = words_of(pattern)
    if len(words) > LONGEST:
        raise ValueError(f"a pattern has at most {LONGEST} words; this one has {len(words)}")
    result: list[str] = []
    pending = False
    for word in words:
        if word == ANY:
            pending = True
            continue
        if pending and word != ONE:
            result.append(ANY)
            pending = False
        result.append(word)
    if pending:
        result.append(ANY)
    return ".".join(result)


class PersistentMap(Generic[V]):
    """Names, or other keys, and what they stand for; :meth:`put` and :meth:`without` make another, and leave this one.

    About as many buckets as each holds entries, so that one change copies about twice the square root of all.
    """

    __slots__ = ("buckets", "mask", "size")

    def __init__(self, buckets: tuple[dict[Any, V], ...] = ({},), size: int = 0) -> None:
        self.buckets = buckets
        self.mask = len(buckets) - 1
        self.size = size

    def get(self, name: Hashable) -> V | None:
        return self.buckets[hash(name) & self.mask].get(name)

    def put(self, name: Hashable, value: V) -> PersistentMap[V]:
        index = hash(name) & self.mask
        bucket = self.buckets[index]
        size = self.size + (name not in bucket)
        return self._with(index, {**bucket, name: value}, size)

    def without(self, name: Hashable) -> PersistentMap[V]:
        index = hash(name) & self.mask
        bucket = self.buckets[index]
        if name not in bucket:
            return self
        return self._with(index, {key: value for key, value in bucket.items() if key != name}, self.size - 1)

    def _with(self, index: int, bucket: dict[Any, V], size: int) -> PersistentMap[V]:
        return PersistentMap(_fitting((*self.buckets[:index], bucket, *self.buckets[index + 1 :]), size), size)

    def changed(self, values: Mapping[Any, V | None]) -> PersistentMap[V]:
        """With many put, or taken away where the value is None: each bucket is copied once."""
        buckets = list(self.buckets)
        copied: set[int] = set()
        for name, value in values.items():
            index = hash(name) & self.mask
            if index not in copied:
                copied.add(index)
                buckets[index] = dict(buckets[index])
            if value is None:
                buckets[index].pop(name, None)
            else:
                buckets[index][name] = value
        size = sum(map(len, buckets))
        return PersistentMap(_fitting(tuple(buckets), size), size)

    def items(self) -> Iterator[tuple[Any, V]]:
        for bucket in self.buckets:
            yield from bucket.items()


def _fitting(buckets: tuple[dict[Any, V], ...], size: int) -> tuple[dict[Any, V], ...]:
    """As many buckets as so many entries need."""
    while size > _FILLED * len(buckets) ** 2:
        buckets = _spread(buckets, len(buckets) * 2)
    while len(buckets) > 1 and size < len(buckets) ** 2 // _FILLED:
        buckets = _spread(buckets, len(buckets) // 2)
    return buckets


def _spread(buckets: tuple[dict[Any, V], ...], count: int) -> tuple[dict[Any, V], ...]:
    fresh: tuple[dict[Any, V], ...] = tuple({} for _ in range(count))
    for bucket in buckets:
        for name, value in bucket.items():
            fresh[hash(name) & (count - 1)][name] = value
    return fresh


class Node(Generic[T]):
    """A place in the tree, never changed once it is made: what ends here, and what goes on from here."""

    __slots__ = ("any", "here", "one", "words")

    def __init__(
        self,
        here: tuple[T, ...] = (),
        words: PersistentMap[Node[T]] | None = None,
        one: Node[T] | None = None,
        any: Node[T] | None = None,
    ) -> None:
        self.here = here
        self.words = words
        self.one = one
        self.any = any

    @property
    def is_bare(self) -> bool:
        """Nothing ends here and nothing goes on."""
        return not (self.here or self.words or self.one or self.any)

    def child(self, word: str) -> Node[T] | None:
        if word == ONE:
            return self.one
        if word == ANY:
            return self.any
        return None if self.words is None else self.words.get(word)

    def with_child(self, word: str, child: Node[T] | None) -> Node[T]:
        """This node with another child at a word of a pattern, or without one."""
        if word == ONE:
            return Node(self.here, self.words, child, self.any)
        if word == ANY:
            return Node(self.here, self.words, self.one, child)
        words = self.words
        if child is not None:
            words = (PersistentMap() if words is None else words).put(word, child)
        elif words is not None:
            words = words.without(word)
        return Node(self.here, words if words is not None and words.size else None, self.one, self.any)

    def with_here(self, here: tuple[T, ...]) -> Node[T]:
        return Node(here, self.words, self.one, self.any)


def added(root: Node[T], pattern: str, item: T) -> Node[T]:
    """The tree with an item more at a normalised pattern."""
    path, node = _path(root, words_of(pattern))
    return _rebuilt(path, node.with_here((*node.here, item)))


def removed(root: Node[T], pattern: str, item: T) -> Node[T]:
    """The tree without the item at a normalised pattern, and without the branch that only led to it."""
    return _removed(root, words_of(pattern), item)


def _removed(root: Node[T], words: list[str], item: T) -> Node[T]:
    path, node = _path(root, words)
    here = node.here
    at = here.index(item)
    return _rebuilt(path, node.with_here(here[:at] + here[at + 1 :]))


def removed_all(root: Node[T], items: Iterable[tuple[str, T]]) -> Node[T]:
    """The tree without many items, each at its normalised pattern: each node is copied once."""
    return _without(root, [(words_of(pattern), item) for pattern, item in items], 0)


def _without(node: Node[T], items: list[tuple[list[str], T]], depth: int) -> Node[T]:
    if len(items) == 1:
        ((words, item),) = items
        return _removed(node, words[depth:], item)
    gone: set[int] = set()
    by_word: dict[str, list[tuple[list[str], T]]] = {}
    for words, item in items:
        if len(words) == depth:
            gone.add(id(item))
        else:
            by_word.setdefault(words[depth], []).append((words, item))
    here = tuple(item for item in node.here if id(item) not in gone) if gone else node.here
    children: dict[str, Node[T] | None] = {}
    for word, group in by_word.items():
        child = node.child(word)
        assert child is not None
        child = _without(child, group, depth + 1)
        children[word] = None if child.is_bare else child
    one, any = children.pop(ONE, node.one), children.pop(ANY, node.any)
    words_ = node.words if node.words is None or not children else node.words.changed(children)
    return Node(here, words_ if words_ is not None and words_.size else None, one, any)


def _path(root: Node[T], words: list[str]) -> tuple[list[tuple[Node[T], str]], Node[T]]:
    path = []
    node = root
    for word in words:
        path.append((node, word))
        node = node.child(word) or Node()
    return path, node


def _rebuilt(path: list[tuple[Node[T], str]], node: Node[T]) -> Node[T]:
    for parent, word in reversed(path):
        node = parent.with_child(word, None if node.is_bare else node)
    return node


def found(root: Node[T], key: str) -> list[T]:  # hot: run for every key that did not come lately
    """All items whose pattern matches the key, each once.

    A node is reached from its one parent only, so none can be in the set twice; but a ``#`` is reached again whenever
    its parent is (it also stands for no word at all), and stays once it is reached. None follows another directly.
    """
    current = [root]
    lasting: list[Node[T]] = []
    known: set[int] = set()
    if root.any is not None:
        known.add(id(root.any))
        lasting.append(root.any)
    for word in key.split("."):
        following = []
        for node in current + lasting if lasting else current:
            words = node.words
            if words is not None:
                child = words.buckets[hash(word) & words.mask].get(word)
                if child is not None:
                    following.append(child)
            if node.one is not None:
                following.append(node.one)
        current = following
        for node in current:
            branch = node.any
            if branch is not None and id(branch) not in known:
                known.add(id(branch))
                lasting.append(branch)
        if not current and not lasting:
            return []
    if not lasting and len(current) == 1:
        return list(current[0].here)
    return [item for node in current + lasting for item in node.here]


def is_endless(key: str) -> bool:
    """Whether a key has more words than any pattern may have. Nothing is looked up by such a key."""
    return len(key) >= LONGEST and key.count(".") >= LONGEST


def matcher(pattern: str) -> Callable[[str], bool]:
    """What tells whether a key matches one pattern; an endless key does not. ``ValueError`` for an illegal pattern."""
    root: Node[bool] = added(Node(), normalised(pattern), True)
    return lambda key: not is_endless(key) and bool(found(root, key))


def matches(pattern: str, key: str) -> bool:
    """Whether one pattern matches one key."""
    return matcher(pattern)(key)


def covers(pattern: str, other: str) -> bool:
    """Whether one pattern matches whatever another one matches; True is certain, False errs where wildcards mingle.

    The words of the other are followed through the pattern as those of a key are, but that a ``#`` stands for any
    number of words, which only a ``#`` can match, and a ``*`` for a word that nobody knows.
    """
    steps = words_of(pattern)
    reached = _after_hashes(steps, {0})
    for word in words_of(other):
        following = set()
        for at in reached:
            step = steps[at] if at < len(steps) else None
            if step == ANY:
                following.add(at)
            elif word != ANY and step in (ONE, word):
                following.add(at + 1)
        reached = _after_hashes(steps, following)
    return len(steps) in reached


def _after_hashes(steps: list[str], reached: set[int]) -> set[int]:
    """Each place, and those behind a ``#``, which may stand for no word."""
    every = set(reached)
    for at in sorted(reached):
        while at < len(steps) and steps[at] == ANY:
            at += 1
            every.add(at)
    return every


def has_wildcard(key: str) -> bool:
    """Whether a key would be a wildcard, were it a pattern."""
    return (ONE in key or ANY in key) and any(word in (ONE, ANY) for word in words_of(key))
