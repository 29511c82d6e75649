"""How a launch deals out the tiles of a share: by a counter in device memory, where the program's loops allow it, else by a fixed rule.

Any deal is right, as the op allows any; the counter is faster, as it follows the order in which blocks really get on. The fixed rule:
block c of n takes tiles c, c + n, c + 2n, ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oxidecopy.isa import expr, ops
from oxidecopy.isa.expr import Const, Expr, Sym, SymKind
from oxidecopy.program.program import BLOCK_SYMBOLS, Launch, Program

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.image import Where
    from oxidecopy.engines.cuda.code.lower import AgentLowering
    from oxidecopy.engines.cuda.code.nodes import Node
    from oxidecopy.program.program import Step


class NotCountedError(Exception):
    """The counter cannot deal this share; the text says why."""


class Deal:
    """The fixed rule."""

    def __init__(self, launch: Launch) -> None:
        x, y, z = launch.grid
        self.blocks = x * y * z
        index: Expr = Const(0)
        for name, step in zip(BLOCK_SYMBOLS, (1, x, x * y), strict=True):
            index = expr.add(index, expr.mul(Sym(name, SymKind.BLOCK), Const(step)))
        self.block = index
        self.slots = 0  # shared offset of the counter's words, 0 without them
        self.shared_bytes = 0  # of a block with those words, 0 without them
        self.words: dict[str, str] = {}  # by share: how it is dealt

    def share(self, low: AgentLowering, op: ops.ShareTiles) -> None:
        """Defines how many tiles this block is given."""
        left = expr.add(expr.sub(op.tiles, self.block), Const(self.blocks - 1))
        low.values.define(op.name, low.values.of(expr.floordiv(left, Const(self.blocks))))

    def next(self, low: AgentLowering, op: ops.NextTile) -> None:
        """Defines which tile it is."""
        low.values.define(op.name, low.values.of(expr.add(self.block, expr.mul(op.index, Const(self.blocks)))))

    def loop(self, low: AgentLowering, op: ops.Loop, step: Step, where: Where) -> list[Node] | None:
        """The records of a loop that the deal has a say in."""
        del low, op, step, where
        return None

    def finish(self, program: Program, sm: int) -> None:
        """Says whether all loops went together, once every agent is lowered."""
