"""User code for type checkers, made from the tables of `isa`: what the types refuse must be exactly what the hardware refuses.

Lines marked `# E` must get an error, others none, as in `tests/typing/contract`. The part of a function's name before `__` is its kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.ops import REDUCE
from oxidecopy.isa.swizzle import SWIZZLES, SwizzleInfo

ALIGNMENTS: Final = (16, 128, 256, 512, 1024)
RANKS: Final = (1, 2, 3, 4, 5)
_TX: Final = "token: ox.TxToken[ox.TmaBarrier]"


def matrix() -> str:
    """The source of the module."""
    head = ["from __future__ import annotations", "", "from typing import Any, Literal as L", "", "import oxidecopy as ox"]
    parts = (*_reductions(), *_element_types(), *_scalars(), *_coordinates(), *_boxes(), *_alignments())
    return "\n".join([*head, *("\n\n" + part for part in parts)]) + "\n"


def _function(name: str, parameters: list[str], lines: list[tuple[str, bool]]) -> str:
    """A function with its lines, each with whether it is right."""
    body = [f"    {line}" + ("" if right else "  # E") for line, right in lines]
    return "\n".join([f"def {name}({', '.join(parameters)}) -> None:", *body])


def _map(dtype: str, rank: int, swizzle: str = "ox.SwizzleNone", box: str = "Any") -> str:
    return f"ox.TmaDescriptor[ox.{dtype}, ox.D{rank}, {swizzle}, {box}]"


def _tile(dtype: str, align: int = 1024) -> str:
    return f"ox.SharedArray[ox.{dtype}, Any, ox.A{align}]"


def _reductions() -> Iterator[str]:
    for dtype, info in DTYPES.items():
        lines = [(f"dst.reduce(ox.reduce.{op}, leader, tile, (0,))", op in info.reduce) for op in REDUCE.words]
        yield _function(f"reductions__{dtype}", ["leader: ox.Leader", f"dst: {_map(dtype, 1)}", f"tile: {_tile(dtype)}"], lines)


def _element_types() -> Iterator[str]:
    for dtype in DTYPES:
        tiles = [f"{other}: {_tile(other)}" for other in DTYPES]
        lines = [(f"src.g2s(leader, {other}, (0,), token)", other == dtype) for other in DTYPES]
        yield _function(f"element_types__{dtype}", ["leader: ox.Leader", _TX, f"src: {_map(dtype, 1)}", *tiles], lines)


def _scalars() -> Iterator[str]:
    for dtype in DTYPES:
        values = [f"{other}: ox.ScalarValue[ox.{other}]" for other in DTYPES]
        lines = [(f"cta.fill(tile, {other})", other == dtype) for other in DTYPES]
        yield _function(f"scalars__{dtype}", ["cta: ox.Cta", f"tile: {_tile(dtype)}", *values], lines)


def _zeros(rank: int) -> str:
    return "(0,)" if rank == 1 else f"({', '.join('0' * rank)})"


def _coordinates() -> Iterator[str]:
    for rank in RANKS:
        handles = [f"src: {_map('f16', rank)}", f"out: ox.GlobalArray[ox.f16, ox.D{rank}]", f"tile: {_tile('f16')}"]
        calls = (
            "src.g2s(leader, tile, {at}, token)",
            "src.g2s_multicast(leader, tile, {at}, token, cta_mask=1)",
            "src.s2g(leader, tile, {at})",
            "src.reduce(ox.reduce.add, leader, tile, {at})",
            "cta.store(out, tile, {at})",
        )
        lines = [(call.format(at=_zeros(given)), given == rank) for call in calls for given in RANKS]
        yield _function(f"coordinates__{rank}", ["cta: ox.ClusterCta", "leader: ox.ClusterLeader", _TX, *handles], lines)


def _boxes() -> Iterator[str]:
    for rank in RANKS:
        forms = [(f"({', '.join(['8'] * given)},)", f"ox.Box{given}[{', '.join(['L[8]'] * given)}]", given == rank) for given in RANKS]
        lines = [(f"ox.TmaDescriptor.tiled(a, box={box})", right) for value, named, right in forms for box in (value, named)]
        yield _function(f"boxes__{rank}", [f"a: ox.GlobalArray[ox.f32, ox.D{rank}]"], lines)


def _alignments() -> Iterator[str]:
    for name, info in SWIZZLES.items():
        yield _alignment(name, info)


def _alignment(name: str, info: SwizzleInfo) -> str:
    mode = "ox.SwizzleNone" if name == "none" else f"ox.Swizzle{name}"
    tiles = [f"a{align}: {_tile('u32', align)}" for align in ALIGNMENTS]
    calls = (
        "src.g2s(leader, {tile}, (0, 0), token)",
        "src.g2s_multicast(leader, {tile}, (0, 0), token, cta_mask=1)",
        "src.s2g(leader, {tile}, (0, 0))",
        "src.reduce(ox.reduce.add, leader, {tile}, (0, 0))",
    )
    lines = [(call.format(tile=f"a{align}"), align >= info.repeat_bytes) for call in calls for align in ALIGNMENTS]
    return _function(f"alignments__{name}", ["leader: ox.ClusterLeader", _TX, f"src: {_map('u32', 2, mode)}", *tiles], lines)
