"""Literal arithmetic: each marked line gets an error of its kind, its twin without a mark none. Nothing else may be said."""

from __future__ import annotations

import pytest

from oxidecopy.isa import dtypes, limits, swizzle
from oxidecopy.mypy_plugin._features import box_rules, call_rules, shared_total
from oxidecopy.mypy_plugin._features.literals import ELEMENT_BYTES, Problem
from oxidecopy.mypy_plugin._features.literals_entry import METHODS, literal_problems
from oxidecopy.mypy_plugin._index import Index
from tests.mypy_plugin.analysed import Checked
from tests.mypy_plugin.built import functions, marks

HEAD = """\
from typing import Any, Final, Literal as L
import oxidecopy as ox
from oxidecopy import A1024, Box1, Box2, Box3, Cta, D1, D2, D3, GlobalArray, Swizzle32B, Swizzle64B, Swizzle128B, SwizzleNone, TmaDescriptor
from oxidecopy import bf16, f32, f64, u8
N: Final = 64
"""

BOXES = (
    HEAD
    + """\
def span(d: TmaDescriptor[f32, D2, Swizzle128B, Box2[L[64], L[64]]]) -> None: ...  # E box
def span_64(d: TmaDescriptor[bf16, D2, Swizzle64B, Box2[L[64], L[64]]]) -> None: ...  # E box
def span_32(d: TmaDescriptor[u8, D1, Swizzle32B, Box1[L[64]]]) -> None: ...  # E box
def fits(d: TmaDescriptor[f32, D2, Swizzle128B, Box2[L[64], L[32]]]) -> None: ...
def fits_64(d: TmaDescriptor[bf16, D2, Swizzle64B, Box2[L[64], L[32]]]) -> None: ...
def no_swizzle(d: TmaDescriptor[f32, D2, SwizzleNone, Box2[L[64], L[64]]]) -> None: ...
def any_swizzle(d: TmaDescriptor[f32, D2, ox.AnySwizzle, Box2[L[64], L[64]]]) -> None: ...
def inner(d: TmaDescriptor[f32, D2, SwizzleNone, Box2[L[64], L[3]]]) -> None: ...  # E box
def inner_fits(d: TmaDescriptor[f32, D2, SwizzleNone, Box2[L[3], L[4]]]) -> None: ...
def extent(d: TmaDescriptor[f32, D2, SwizzleNone, Box2[L[257], L[4]]]) -> None: ...  # E box
def none(d: TmaDescriptor[f32, D2, SwizzleNone, Box2[L[0], L[4]]]) -> None: ...  # E box
def most(d: TmaDescriptor[u8, D2, SwizzleNone, Box2[L[256], L[256]]]) -> None: ...
def unknown(d: TmaDescriptor[f32, D2, Swizzle128B], e: TmaDescriptor[f32, D2, Swizzle128B, Box2[Any, L[3]]]) -> None: ...
def inside(d: list[TmaDescriptor[f32, D1, SwizzleNone, Box1[L[2]]]]) -> None: ...  # E box
def given() -> TmaDescriptor[f32, D1, SwizzleNone, Box1[L[2]]] | None: ...  # E box
Bad = TmaDescriptor[f32, D2, Swizzle128B, Box2[L[64], L[64]]]  # E box
Good = TmaDescriptor[f32, D2, Swizzle128B, Box2[L[64], L[32]]]
def uses(a: Bad, b: Good) -> None: ...

def tiled(a: GlobalArray[f32, D2], b: GlobalArray[f64, D3], n: int) -> None:
    TmaDescriptor.tiled(a, box=(64, 64))
    TmaDescriptor.tiled(a, box=(64, 64), swizzle=ox.Swizzle128B)  # E box
    TmaDescriptor.tiled(a, box=(64, 32), swizzle=ox.Swizzle128B)
    TmaDescriptor.tiled(a, box=(N, N), swizzle=ox.Swizzle128B)  # E box
    TmaDescriptor.tiled(a, box=(N, N // 2), swizzle=ox.Swizzle128B)
    TmaDescriptor.tiled(a, box=(n, 3))  # E box
    TmaDescriptor.tiled(a, box=(n, 4))
    TmaDescriptor.tiled(a, box=(3, n))
    TmaDescriptor.tiled(a, box=(512, n))  # E box
    TmaDescriptor.tiled(a, box=(2 * 4 * 32, n))
    TmaDescriptor.tiled(a, box=Box2[L[8], L[3]])  # E box
    TmaDescriptor.tiled(a, box=Box2[L[8], L[4]])
    TmaDescriptor.tiled(b, box=(4, 128, 128))  # E box
    TmaDescriptor.tiled(b, box=(2, 96, 128))
    TmaDescriptor.tiled(b, box=(4, 128, 128), element_strides=(4, 1, 1))
    box = (64, 64)
    TmaDescriptor.tiled(a, box=box, swizzle=ox.Swizzle128B)
    final: Final = (64, 64)
    TmaDescriptor.tiled(a, box=final, swizzle=ox.Swizzle128B)  # E box

made = TmaDescriptor.tiled(ox.Device.open("sim").empty((64, 64), f32), box=(64, 2))  # E box
"""
)

SHARED = (
    HEAD
    + """\
Big = TmaDescriptor[f32, D2, SwizzleNone, Box2[L[128], L[128]]]  # 65536 bytes

def too_many(cta: Cta) -> None:
    cta.shared(f32, (256, 128), align=A1024)
    cta.shared(f32, (128, 128), align=A1024)
    cta.shared(f32, (128, 64), align=A1024)  # 229376 in all
    cta.shared(f32, (64, 64), align=A1024)  # E smem

def just_fits(cta: Cta) -> None:
    cta.shared(u8, (227 * 1024,), align=A1024)

def one_over(cta: Cta) -> None:
    cta.shared(u8, (227 * 1024 + 1,), align=A1024)  # E smem

def by_type(cta: Cta, d: Big) -> None:
    cta.shared(d)
    cta.shared(f32, Box2[L[128], L[128]], align=A1024)
    cta.shared(d)
    cta.shared(d)  # E smem

def stages(cta: Cta, d: Big, n: int) -> None:
    cta.shared(d, stages=4)  # E smem

def stages_fit(cta: Cta, d: Big, n: int) -> None:
    cta.shared(d, stages=3)
    cta.shared(d, stages=n)

def ring(cta: ox.Cta, d: Big) -> None:
    cta.ring(stages=4, tiles=(d,))  # E smem

def ring_of_two(cta: ox.Cta, d: Big) -> None:
    cta.ring(stages=2, tiles=(d, d))  # E smem

def ring_fits(cta: ox.Cta, d: Big, e: TmaDescriptor[f32, D2]) -> None:
    cta.ring(stages=3, tiles=(d,))
    cta.ring(stages=60, tiles=(e,))

def both_rings(cta: ox.Cta, d: Big) -> None:
    cta.ring(stages=2, tiles=(d,))
    cta.store_ring(d, stages=2)  # E smem

@ox.pipeline(warps=ox.roles(producer=1, consumers=4), cluster=2)
def multicast(cta: ox.ClusterCta, d: Big) -> None:
    cta.multicast_ring(stages=2, tiles=(d,))  # E smem

@ox.pipeline(warps=ox.roles(producer=1, consumers=4), cluster=2)
def multicast_fits(cta: ox.ClusterCta, d: Big) -> None:
    cta.multicast_ring(stages=1, tiles=(d,))

def either(cta: Cta, d: Big, c: bool) -> None:
    if c:
        cta.shared(d, stages=3)
    else:
        cta.shared(d, stages=2)
    cta.shared(d)
    cta.shared(d)  # E smem

def one_of(cta: Cta, d: Big, c: bool) -> None:
    if c:
        cta.shared(d, stages=2)
    if not c:
        cta.shared(d, stages=2)
    x = cta.shared(d) if c else cta.shared(d)
    match c:
        case True:
            cta.shared(d)
        case _:
            cta.shared(d)

def returns(cta: Cta, d: Big, c: bool) -> None:
    if c:
        cta.shared(d, stages=3)
        return
    cta.shared(d, stages=3)

def may_be_skipped(cta: Cta, d: Big, n: int) -> None:
    for _ in range(n):
        cta.shared(d)
    while n:
        cta.shared(d)
        n -= 1
    cta.shared(d, stages=3)

def repeated(cta: Cta, d: Big) -> None:
    for _ in range(4):
        cta.shared(d)  # E smem

def repeated_fits(cta: Cta, d: Big) -> None:
    for _ in range(3):
        cta.shared(d)
    for _ in range(9):
        break
        cta.shared(d)

def comprehension(cta: Cta, d: Big, n: int) -> None:
    tiles = [cta.shared(d) for _ in range(n)]
    cta.shared(d, stages=3)

def failing(cta: Cta, d: Big) -> None:
    try:
        cta.shared(d, stages=2)
    except ValueError:
        cta.shared(d, stages=2)
    cta.shared(d)

def two_blocks(cta: Cta, other: Cta, d: Big) -> None:
    cta.shared(d, stages=3)
    other.shared(d, stages=3)

def fresh_blocks(ctas: list[Cta], d: Big) -> None:
    for cta in ctas:
        cta.shared(d, stages=3)

def in_a_block(cta: Cta, d: Big) -> None:
    with cta.elect():
        a = cta.shared(d, stages=3)
    b = cta.shared(d)  # E smem

def inner(cta: Cta, d: Big) -> None:
    def helper(cta: Cta) -> None:
        cta.shared(d, stages=3)
    cta.shared(d, stages=3)
"""
)

CALLS = (
    HEAD
    + """\
Desc = TmaDescriptor[f32, D2, SwizzleNone, Box2[L[64], L[32]]]
Tile = ox.SharedArray[f32, Box2[L[64], L[32]], A1024]
Armed = ox.TxToken[ox.TmaBarrier]
Bar = ox.ManagedBarrier[ox.Ready, ox.TmaBarrier]

@ox.pipeline(threads=32, cluster=(2, 1))
def pair(cta: ox.ClusterCta, src: Desc, m: ox.Idx) -> None:
    tile, bar = cta.shared(src), cta.barrier().init(1)
    with cta.elect() as leader:
        token = bar.arrive_expect_tx(leader, tile.nbytes)
        src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=0b11)
        src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=0b111)  # E tx
        src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=1 << 1)
        src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=1 << 2)  # E tx
        src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=-1)  # E tx
        src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=m)
        bar.arrive_remote(1)
        bar.arrive_remote(2)  # E tx
        bar.arrive_remote(cta_rank=2)  # E tx
        bar.arrive_expect_tx_remote(leader, tile, cta_rank=1)
        bar.arrive_expect_tx_remote(leader, tile, cta_rank=2)  # E tx

SIZE = 4
@ox.pipeline(threads=32, cluster=(SIZE, 1))
def of_unknown_size(cta: ox.ClusterCta, src: Desc) -> None:
    tile, bar = cta.shared(src), cta.barrier().init(1)
    with cta.elect() as leader:
        token = bar.arrive_expect_tx(leader, tile.nbytes)
        src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=0b1111)
        src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=1 << 16)  # E tx

def helper(leader: ox.ClusterLeader, src: Desc, tile: Tile, token: Armed) -> None:
    src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=0xFFFF)

def announced(bar: Bar, leader: ox.Leader, tile: Tile, n: int) -> None:
    bar.expect_tx(leader, (1 << 20) - 1)
    bar.expect_tx(leader, 1 << 20)  # E tx
    bar.expect_tx(leader, tile.nbytes * 128)  # E tx
    bar.expect_tx(leader, tile.nbytes * 127)
    bar.expect_tx(leader, tile, (1 << 20) - 1)  # E tx
    bar.expect_tx(leader, tile, n)
    bar.expect_tx(leader, tile, -16)  # E tx
    bar.complete_tx(leader, 1 << 20)  # E tx
"""
)

SOURCES = {"boxes": BOXES, "shared": SHARED, "calls": CALLS}


def found(checked: Checked, name: str) -> list[Problem]:
    kept = checked.kept[name]
    index = Index(kept.types, METHODS)
    return [p for fn in (None, *functions(kept.tree)) for p in literal_problems(kept.tree, fn, kept.types, name, index)]


@pytest.mark.parametrize("name", SOURCES)
def test_marked_lines_and_no_others(checked: Checked, name: str) -> None:
    assert [error for error in checked.said(name) if not error[1].startswith("oxidecopy-")] == []  # plain typing has nothing to say of them
    said = sorted((p.node.line, p.code.code.removeprefix("oxidecopy-")) for p in found(checked, name))
    assert said == sorted(marks(SOURCES[name]))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("boxes", "TMA box: the inner dimension is 64 x 4 (f32) = 256 bytes, wider than the 128-byte span of a 128B swizzle"),
        ("boxes", "TMA box: the inner dimension is 3 x 4 (f32) = 12 bytes, no multiple of 16"),
        ("boxes", "TMA box: entry 0 is 257; each extent is 1 to 256 elements"),
        ("boxes", "TMA box: 524288 bytes, more than the 233472 that one copy can move"),
        ("shared", "Shared memory: this array of 16384 bytes brings the total to 245760, over the limit of 232448 (227 KiB)"),
        ("shared", "Shared memory: this ring of 4 stages x 65536 bytes is over the limit of 232448 (227 KiB)"),
        ("shared", "Shared memory: 4 rounds of this loop bring the total to 262144, over the limit of 232448 (227 KiB)"),
        ("calls", "Multicast mask 0b111 names CTAs that do not exist: the declared cluster has 2 CTAs"),
        ("calls", "Cluster rank 2 does not exist: the declared cluster has 2 CTAs"),
        ("calls", "A barrier cannot be told to expect 1048576 bytes in one phase: it counts to 1048575"),
    ],
)
def test_words(checked: Checked, name: str, message: str) -> None:
    assert message in {p.message for p in found(checked, name)}


def test_every_error_says_what_to_do_or_is_plain(checked: Checked) -> None:
    silent = [p.message for name in SOURCES for p in found(checked, name) if not p.notes]
    assert all(m.startswith(("Shared memory", "TMA box: entry", "A barrier cannot be told to expect -")) for m in silent)


def test_numbers_are_those_of_the_package() -> None:
    whole = {name: row.nbytes for name, row in dtypes.DTYPES.items() if row.bits % 8 == 0}
    assert whole == ELEMENT_BYTES
    assert box_rules.BOX_DIM_MAX == limits.BOX_DIM_MAX
    assert box_rules.BOX_INNER_ALIGN == limits.BOX_INNER_ALIGN
    assert box_rules.BOX_BYTES_MAX == limits.BOX_BYTES_MAX
    spans = {row.span_bytes for row in swizzle.SWIZZLES.values() if row.span_bytes}
    assert set(box_rules.SPANS.values()) == spans
    assert max(limits.SHARED_BYTES_MAX.values()) == shared_total.SHARED_BYTES_MAX
    assert call_rules.CLUSTER_MAX == limits.CLUSTER_MAX
    assert call_rules.TX_MAX == limits.MBARRIER_TX_MAX
