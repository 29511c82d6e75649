"""Inits of barriers that stand together are one record: a ring has two barriers for each stage, and a record takes its time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from oxidecopy.engines.cuda.abi import DeviceOp
from oxidecopy.engines.cuda.code.nodes import Node, Op
from oxidecopy.isa.limits import MBARRIER_BYTES, WARP


def together(nodes: Sequence[Node]) -> list[Node]:
    """The same nodes, with inits of barriers that lie side by side and stand side by side made one."""
    made: list[Node] = []
    for known, group in groupby(nodes, _address_is_known):
        run = list(group)
        made += _joined([node for node in run if isinstance(node, Op)]) if known else run
    return made


def _address_is_known(node: Node) -> bool:
    return isinstance(node, Op) and node.op is DeviceOp.MBARRIER_INIT and not node.operands[0][1][1]


def _joined(inits: list[Op]) -> Iterator[Op]:
    """Their order is of no matter, as they are of different barriers."""
    by_place = {(dict(op.imms)[1], op.operands[0][1][0]): op for op in inits}
    if len({at for _, at in by_place}) < len(inits):
        yield from inits
        return
    run: list[tuple[int, int]] = []
    for count, at in sorted(by_place):
        if run and ((count, at) != (run[0][0], run[-1][1] + MBARRIER_BYTES) or len(run) == WARP):
            yield _init(by_place[run[0]], len(run))
            run = []
        run.append((count, at))
    yield _init(by_place[run[0]], len(run))


def _init(first: Op, barriers: int) -> Op:
    first.imms = (*first.imms[:1], (2, barriers))
    return first
