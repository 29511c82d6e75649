"""What an agent does, between the program and its records: ops with values for operands, and blocks. Nothing has a register yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, final

from oxidecopy.engines.cuda.abi import DeviceOp
from oxidecopy.engines.cuda.code.coordinates import Placement
from oxidecopy.engines.cuda.code.image import Where
from oxidecopy.engines.cuda.code.scalars import Instruction
from oxidecopy.engines.cuda.code.values import ZERO, Lin, Test


@final
@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Op:
    """A record. `operands` are values by operand number, added to an immediate; `exact` ones are in registers alone.

    `map` is an array's place among the argument words; `slot` that of a copy's tensor map, or with `placed` the row of `map` that it is.
    `result` is the symbol (or the answer) that the op writes, to register 2. `kept` are the agent's registers of a token
    (`abi.TOKEN_KEPT`). `tail` are the records that follow.
    """

    op: DeviceOp
    where: Where
    aux: int = 0
    map: int = 0
    slot: Lin = ZERO
    placed: bool = False
    flags: int = 0
    operands: tuple[tuple[int, Lin], ...] = ()
    exact: tuple[tuple[int, Lin], ...] = ()
    imms: tuple[tuple[int, int], ...] = ()
    result: Lin | Test | None = None
    kept: tuple[Test, ...] = ()
    tail: bytes = b""


@final
@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class If:
    """A branch whose condition is not known before the launch."""

    test: Test
    body: list[Node]
    where: Where


@final
@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Repeat:
    """A loop, op by op. `counter` is a symbol, or a constant when the loop runs at most once.

    With `stages` it is one over a share that a counter deals: it starts where the ring's next stage is full (`full` is the shared offset
    of stage 0), and `tile` is what came with it.
    """

    counter: Lin
    start: Lin
    stop: Lin
    step: int
    body: list[Node]
    where: Where
    full: int = 0
    stages: int = 0
    tile: Lin = ZERO


@final
@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Copy:
    """A load or store of a fused loop; its coordinates are instructions `begin` to `end` of the loop, or so many of its `places`."""

    map: int
    rank: int
    kind: DeviceOp
    reduce: int
    tile: Lin
    stride: int
    mask: Lin
    coords: tuple[Lin, ...]
    begin: int = 0
    end: int = 0


@final
@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Fused:
    """A whole loop as one record: see `abi.RING`. Coordinates are given by `places`, or by `code` where there is one that is no place.

    `counter` is that of the loop as it was, which begins at `begin`; what the copies' coordinates are made of.
    """

    op: DeviceOp
    start: Lin
    stop: Lin
    full: int
    empty: int
    nbytes: int
    offset: int
    stages: int
    flags: int
    copies: tuple[Copy, ...]
    code: list[Instruction]
    places: list[Placement]
    where: Where
    counter: Lin = ZERO
    begin: Lin = ZERO
    empty_behind: int = 0
    first: int = 0
    peers: int = 0


Node: TypeAlias = Op | If | Repeat | Fused


@final
class Stream(NamedTuple):
    """One agent's code before registers."""

    nodes: list[Node]
    answers: list[Test]
