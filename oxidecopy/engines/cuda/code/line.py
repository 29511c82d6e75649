"""Code that is a straight line of ops, read one after the other: what recognises whole programs goes along it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oxidecopy.engines.cuda.abi import DeviceOp
from oxidecopy.engines.cuda.code.nodes import Node, Op
from oxidecopy.engines.cuda.code.values import INT_MAX, INT_MIN
from oxidecopy.engines.cuda.code.whole import LeftError


class Line:
    """Nodes of an agent, as `whose` has them ("a copy"); methods raise `LeftError` where what comes next is something else."""

    def __init__(self, nodes: Sequence[Node], whose: str) -> None:
        self.ops = [node for node in nodes if isinstance(node, Op)]
        self.next = 0
        self._whose = whose
        other = next((node for node in nodes if not isinstance(node, Op)), None)
        if other is not None:
            raise LeftError("a loop or a branch", other.where)

    @property
    def left(self) -> Op | None:
        """The next op, if there is one."""
        return self.ops[self.next] if self.next < len(self.ops) else None

    def take(self, *kinds: DeviceOp, imm: tuple[int, int] | None = None) -> Op:
        """The next op, which is one of these, with that immediate."""
        wanted, op = kinds[0].name.lower(), self.left
        if op is None:
            raise LeftError(f"no {wanted} at its end", self.ops[-1].where if self.ops else None)
        if op.op not in kinds:
            raise LeftError(f"{op.op.name.lower()}, where {self._whose} has its {wanted}", op.where)
        if imm is not None and imm not in op.imms:
            raise LeftError(f"{op.op.name.lower()} of another count than {self._whose} has", op.where)
        self.next += 1
        return op

    def run(self, *kinds: DeviceOp) -> Iterator[Op]:
        """All ops from here on that are of these."""
        while self.left is not None and self.left.op in kinds:
            yield self.take(*kinds)

    @staticmethod
    def constant(op: Op, operand: int) -> int:
        """An operand that is known."""
        value, terms = dict(op.operands)[operand]
        if terms or not INT_MIN <= value <= INT_MAX:
            raise LeftError("a barrier, phase or tile that is known only when it runs", op.where)
        return value

    def end(self, words: str) -> None:
        """Raises `LeftError` with these words where there is an op more."""
        if self.left is not None:
            raise LeftError(words, self.left.where)
