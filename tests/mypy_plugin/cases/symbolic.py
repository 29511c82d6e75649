"""Python's control flow on recorded values, and floats for integer scalars."""

from __future__ import annotations

from typing import Literal as L

import oxidecopy as ox

Tile = ox.SharedArray[ox.f32, ox.Box2[L[32], L[32]], ox.A128]


def if_ok(cta: ox.Cta, n: int) -> None:
    i = cta.block_idx.x
    with cta.when((i == 0) & (i < n)):
        pass
    if n == 0:
        pass
    if i is None:
        pass


def if_bad(cta: ox.Cta) -> None:
    i = cta.block_idx.x
    if i == 0:  # E: [oxidecopy-symbolic]
        pass
    elif i:  # E: [oxidecopy-symbolic]
        pass


def if_mended_ok(cta: ox.Cta) -> None:
    i = 3
    if i == 0:
        pass
    elif i:
        pass


def while_bad(cta: ox.Cta) -> None:
    i = cta.block_idx.x
    while i < 3:  # E: [oxidecopy-symbolic]
        pass


def while_ok(cta: ox.Cta) -> None:
    i = 3
    while i < 3:
        pass


def and_ok(cta: ox.Cta, n: int) -> ox.Pred | bool:
    i = cta.block_idx.x
    return n > 2 and i == 0


def and_bad(cta: ox.Cta, n: int) -> ox.Pred | bool:
    i = cta.block_idx.x
    return i == 0 and n > 2  # E: [oxidecopy-symbolic]


def or_tested_bad(cta: ox.Cta, n: int) -> None:
    i = cta.block_idx.x
    if n > 2 or i == 0:  # E: [oxidecopy-symbolic]
        pass


def or_tested_ok(cta: ox.Cta, n: int) -> None:
    i = n
    if n > 2 or i == 0:
        pass


def not_ok(cta: ox.Cta) -> ox.Pred:
    return ~(cta.block_idx.x == 0)


def not_bad(cta: ox.Cta) -> bool:
    return not (cta.block_idx.x == 0)  # E: [oxidecopy-symbolic]


def ternary_bad(cta: ox.Cta) -> int:
    return 1 if cta.block_idx.x == 0 else 2  # E: [oxidecopy-symbolic]


def assert_bad(cta: ox.Cta) -> None:
    assert cta.block_idx.x == 0  # E: [oxidecopy-symbolic]


def comprehension_bad(cta: ox.Cta) -> list[int]:
    return [k for k in range(4) if cta.block_idx.x == k]  # E: [oxidecopy-symbolic]


def comprehension_ok(cta: ox.Cta) -> list[int]:
    return [k for k in range(4) if cta.threads == k]


def chain_ok(cta: ox.Cta) -> ox.Pred:
    i = cta.block_idx.x
    return (i >= 0) & (i < 3)


def chain_bad(cta: ox.Cta) -> object:
    i = cta.block_idx.x
    return 0 <= i < 3  # E: [oxidecopy-symbolic]


def in_bad(cta: ox.Cta) -> bool:
    return cta.block_idx.x in (0, 1)  # E: [oxidecopy-symbolic]


def min_ok(cta: ox.Cta) -> ox.SymIdx:
    return ox.minimum(cta.block_idx.x, 3)


def min_bad(cta: ox.Cta) -> object:
    i = cta.block_idx.x
    return min(i, i + 1)  # type: ignore[call-overload]  # E: [oxidecopy-symbolic]


def max_bad(cta: ox.Cta) -> object:
    i = cta.block_idx.x
    return max(i, i + 1)  # type: ignore[call-overload]  # E: [oxidecopy-symbolic]


def sorted_bad(cta: ox.Cta) -> object:
    i = cta.block_idx.x
    return sorted([i, i + 1])  # type: ignore[type-var]  # E: [oxidecopy-symbolic]


def bool_bad(cta: ox.Cta) -> bool:
    return bool(cta.block_idx.x == 0)  # E: [oxidecopy-symbolic]


def any_bad(cta: ox.Cta) -> bool:
    i = cta.block_idx.x
    return any([i == 0, i == 1])  # E: [oxidecopy-symbolic]


def all_bad(cta: ox.Cta) -> bool:
    i = cta.block_idx.x
    return all([i == 0, i == 1])  # E: [oxidecopy-symbolic]


def match_bad(cta: ox.Cta) -> None:
    match cta.block_idx.x:
        case 0:  # E: [oxidecopy-symbolic]
            pass
        case _:
            pass


def match_ok(cta: ox.Cta) -> None:
    match cta.threads:
        case 0:
            pass
        case _:
            pass


def element_ok(group: ox.Group, tile: Tile) -> None:
    group.map(lambda v: (v > 0).select(v, -v), tile, out=tile)


def element_and_ok(group: ox.Group, tile: Tile) -> None:
    group.map(lambda v: ((v > 0) & (v < 1)).select(v, 0), tile, out=tile)


def element_min_ok(group: ox.Group, tile: Tile) -> None:
    group.map(lambda v: v.minimum(0 * v), tile, out=tile)


def element_bad(group: ox.Group, tile: Tile) -> None:
    group.map(lambda v: v if v > 0 else -v, tile, out=tile)  # E: [oxidecopy-symbolic]


def element_and_bad(group: ox.Group, tile: Tile) -> None:
    group.map(lambda v: (v > 0 and v < 1).select(v, 0), tile, out=tile)  # E: [oxidecopy-symbolic]


def element_min_bad(group: ox.Group, tile: Tile) -> None:
    group.map(lambda v: min(v, 0 * v), tile, out=tile)  # type: ignore[call-overload]  # E: [oxidecopy-symbolic]


@ox.pipeline(threads=32)
def scalars(cta: ox.Cta, n: ox.Scalar[ox.i32], a: ox.Scalar[ox.f32]) -> None: ...


def launch_ok() -> None:
    scalars[1](2, 2.5)


def bind_ok() -> None:
    scalars[1].bind(n=2, a=1)


def launch_bad() -> None:
    scalars[1](2.5, 2.5)  # E: [oxidecopy-symbolic]


def bind_bad() -> None:
    scalars[1].bind(n=2.5, a=1)  # E: [oxidecopy-symbolic]
