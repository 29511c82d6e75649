"""Where each value of an agent is computed, found before anything is written.

A *region* is a body: the agent's whole code, that of a loop or of a branch. A value is wanted in the region of the op that uses it, or
further out: it leaves every loop that it does not depend on. In the `lean` way, for agents that need more registers than there are, each
value is wanted by its op alone.
"""

from __future__ import annotations

from typing import final

from oxidecopy.engines.cuda.code.nodes import Fused, If, Node, Op, Repeat
from oxidecopy.engines.cuda.code.scalars import Key, registers_of
from oxidecopy.engines.cuda.code.values import INT_MAX, INT_MIN, ZERO, Lin, Terms, Test, Values


@final
class Region:
    """A body while its values are placed. `wants`: the first and last node here that needs a value; `have`: the values' registers."""

    __slots__ = ("above", "at", "have", "late", "loop", "own", "wants")

    def __init__(self, above: Region | None, *, loop: bool, own: int) -> None:
        self.above = above
        self.loop = loop
        self.at = 0  # the node that is being looked at
        self.own = own  # symbols that come into being here: the loop's counter, and `late` ones, which ops read
        self.late = 0
        self.wants: dict[tuple[Key, int], list[int]] = {}  # the lean way tells uses by different nodes apart
        self.have: dict[Key, int] = {}


@final
class Placing:
    """Goes once over the nodes; then `outermost` and `regions`, by the node that has the body, say what is computed where."""

    def __init__(self, values: Values, nodes: list[Node], *, wide: bool, lean: bool) -> None:
        self.lean = lean
        self.outermost = self._region = Region(None, loop=False, own=0)
        self.regions: dict[int, Region] = {}
        self._values = values
        self._wide = wide
        self._place(nodes, self.outermost)

    def parts(self, value: Lin) -> tuple[int, Lin]:
        """An operand as immediate and what a register holds: in wide code all of it where no immediate holds the constant."""
        if self._wide and not INT_MIN <= value[0] <= INT_MAX:
            return 0, value
        return value[0], (0, value[1])

    def symbols_of(self, key: Key) -> int:
        """The symbols in it, a bit each."""
        return self._values.symbols_of_test(key) if isinstance(key, Test) else self._values.symbols_of(key)

    def _place(self, nodes: list[Node], region: Region) -> None:
        outside, self._region = self._region, region
        region.late = self._read_in(nodes)
        region.own |= region.late
        for i, node in enumerate(nodes):
            region.at = i
            match node:
                case Op():
                    whole = [value for _, value in node.exact]
                    for key in (*[self.parts(value)[1] for _, value in node.operands], *whole, self.parts(node.slot)[1]):
                        self._want(key)
                case If():
                    self._want_test(node.test)
                    self._inner(node, loop=False, own=0)
                case Repeat():
                    for value in (node.start, node.stop, (node.step, ())):
                        self._want(self.parts(value)[1])
                    self._inner(node, loop=True, own=self._values.symbols_of(node.counter) | self._values.symbols_of(node.tile))
                case Fused():
                    self._want_fused(node)
        self._region = outside

    def _read_in(self, nodes: list[Node]) -> int:
        """Symbols that ops of this body read."""
        bits = 0
        for node in nodes:
            if isinstance(node, Op) and node.result is not None and not isinstance(node.result, Test):
                bits |= self._values.symbols_of(node.result)
        return bits

    def _want_fused(self, node: Fused) -> None:
        for value in (node.start, node.stop, *[c.tile for c in node.copies], *[c.mask for c in node.copies]):
            self._want((0, value[1]))
        for token in (*registers_of(node.code), *[token for place in node.places for token in (place.reg, place.base_reg)]):
            if isinstance(token, tuple):
                self._want((0, token))

    def _inner(self, node: If | Repeat, *, loop: bool, own: int) -> None:
        region = self.regions[id(node)] = Region(self._region, loop=loop, own=own)
        self._place(node.body, region)

    def _want_test(self, test: Test) -> None:
        if test.kind == "other":
            self._want((0, test.a[1]))
        elif not asks(test):
            self._want(test)

    def _want(self, key: Key) -> None:
        if key == ZERO or (not isinstance(key, Test) and key[0] == 0 and self._is_symbol(key[1])):
            return
        best = here = self._region
        if not self.lean:
            bits = self.symbols_of(key)
            while here.above is not None and not here.own & bits:
                if here.loop:
                    best = here.above
                here = here.above
                if (key, 0) in here.wants:
                    best = here
        uses = best.wants.setdefault((key, best.at if self.lean else 0), [best.at, best.at])
        uses[1] = best.at

    def _is_symbol(self, terms: Terms) -> bool:
        return len(terms) == 1 and terms[0][1] == 1 and self._values.atoms[terms[0][0]].kind == "sym"


def asks(test: Test) -> bool:
    """True when an answer is in it, which an op before it may have changed."""
    return test.kind == "answer" or any(asks(part) for part in test.parts)
