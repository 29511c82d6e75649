"""Orders of tiles: whatever grid, cluster and extents, every tile is visited exactly once, by the right workers."""

from __future__ import annotations

from collections import Counter
from itertools import product as every
from math import prod
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oxidecopy as ox
from oxidecopy.errors import OxidecopyError, UsageError
from oxidecopy.isa import ops
from oxidecopy.isa.expr import evaluate, holds
from oxidecopy.program.program import ArrayParam, MapParam, Program, Step
from oxidecopy.tiles.cta import ClusterCta, Cta
from oxidecopy.tiles.schedule import Order, Per
from oxidecopy.typed.recording import ArgumentSpec, record

Box = tuple[int, ...]


def visits(box: Box, order: Order | None, *, cluster: tuple[int, int, int] = (1, 1, 1), per: Per = "cta") -> Program:
    """A program whose plain stores sit at the corners that are visited."""

    def body(cta: Any, src: Any, out: Any) -> None:
        tile = cta.shared(src)
        for at in cta.tiles(src, order=order, per=per):
            cta.store(out, tile, at)

    specs: dict[str, ArgumentSpec] = {
        "src": MapParam(name="src", dtype="f32", box_dim=box, element_strides=(1,) * len(box)),
        "out": ArrayParam(name="out", dtype="f32", rank=len(box)),
    }
    make = Cta if cluster == (1, 1, 1) else ClusterCta
    return record(body, threads=32, cluster=cluster, arguments=specs, cta=make)


def corners(steps: tuple[Step, ...], env: dict[str, int]) -> list[tuple[int, ...]]:
    out: list[tuple[int, ...]] = []
    for step in steps:
        if isinstance(step.op, ops.StoreGlobal):
            out.append(tuple(evaluate(c, env) for c in step.op.coords))
        elif isinstance(step.op, ops.Loop):
            for i in range(evaluate(step.op.start, env), evaluate(step.op.stop, env), step.op.step):
                out += corners(step.body, {**env, step.op.counter: i})
    return out


def by_cta(program: Program, extents: Box, grid: tuple[int, int, int]) -> dict[tuple[int, int, int], list[tuple[int, ...]]]:
    env = {f"grid_dim.{a}": n for a, n in zip("xyz", grid, strict=True)} | {f"src.dim[{i}]": n for i, n in enumerate(extents)}
    blocks = every(*(range(n) for n in grid))
    return {(x, y, z): corners(program.steps, env | {"block_idx.x": x, "block_idx.y": y, "block_idx.z": z}) for x, y, z in blocks}


def wanted(extents: Box, box: Box) -> Counter[tuple[int, ...]]:
    return Counter(every(*(range(0, n, b) for n, b in zip(extents, box, strict=True))))


ORDERS: Final[list[Order | None]] = [None, ox.order.linear, ox.order.grouped(1), ox.order.grouped(2), ox.order.grouped(3)]
EXTENTS = st.lists(st.integers(1, 40), min_size=2, max_size=4).map(tuple)
GRID = st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 2))


@given(EXTENTS, st.data(), st.sampled_from(ORDERS), GRID)
def test_every_tile_once(extents: Box, data: st.DataObject, order: Order | None, grid: tuple[int, int, int]) -> None:
    box = tuple(data.draw(st.sampled_from([4, 8, 16])) for _ in extents)
    program = visits(box, order)
    seen = Counter(c for found in by_cta(program, extents, grid).values() for c in found)
    assert seen == wanted(extents, box)


@given(EXTENTS, GRID)
def test_one_shot_needs_a_worker_for_each_tile(extents: Box, grid: tuple[int, int, int]) -> None:
    box = (8,) * len(extents)
    found = by_cta(visits(box, ox.order.once), extents, grid)
    assert all(len(v) <= 1 for v in found.values())
    total = wanted(extents, box)
    assert sum(len(v) for v in found.values()) == min(len(found), total.total())


@given(EXTENTS, GRID, st.sampled_from(["cta", "cluster"]))
def test_one_shot_asks_for_a_worker_for_each_tile(extents: Box, grid: tuple[int, int, int], per: Per) -> None:
    box = (8,) * len(extents)
    program = visits(box, ox.order.once, cluster=(2, 1, 1), per=per)
    (asked,) = program.requires
    grid = (2 * grid[0], *grid[1:])
    env = {f"grid_dim.{a}": n for a, n in zip("xyz", grid, strict=True)} | {f"src.dim[{i}]": n for i, n in enumerate(extents)}
    workers = prod(grid) // (2 if per == "cluster" else 1)
    assert holds(asked.cond, env, {}) == (wanted(extents, box).total() <= workers)


def test_what_two_roles_ask_of_a_launch_is_asked_once() -> None:
    def body(cta: Any, src: Any) -> None:
        for _ in range(2):
            for _ in cta.tiles(src, order=ox.order.once):
                pass

    spec = MapParam(name="src", dtype="f32", box_dim=(8, 8), element_strides=(1, 1))
    assert len(record(body, threads=32, cluster=(1, 1, 1), arguments={"src": spec}, cta=Cta).requires) == 1


def test_other_orders_ask_nothing_of_a_launch() -> None:
    assert all(visits((8, 8), order).requires == () for order in ORDERS)


def test_a_cluster_shares_its_tiles() -> None:
    program = visits((8, 8), None, cluster=(2, 1, 1), per="cluster")
    found = by_cta(program, (30, 30), (4, 1, 1))
    assert found[0, 0, 0] == found[1, 0, 0] != found[2, 0, 0] == found[3, 0, 0]
    assert Counter(found[0, 0, 0] + found[2, 0, 0]) == wanted((30, 30), (8, 8))


def test_grouped_goes_down_the_rows_first() -> None:
    (found,) = by_cta(visits((8, 8), ox.order.grouped(2)), (24, 16), (1, 1, 1)).values()
    assert found == [(0, 0), (8, 0), (0, 8), (8, 8), (16, 0), (16, 8)]


def test_a_users_own_order() -> None:
    backwards = ox.order.custom(lambda i, n: (n[0] - 1 - i, 0), lambda n: n[0])
    (found,) = by_cta(visits((8, 8), backwards), (24, 8), (1, 1, 1)).values()
    assert found == [(16, 0), (8, 0), (0, 0)]


@pytest.mark.parametrize(
    ("order", "rule"),
    [
        (ox.order.grouped(0), "OX1110"),
        (ox.order.grouped(True), "OX1110"),
        (ox.order.grouped("2"), "OX1110"),  # type: ignore[arg-type]
        ("linear", "OX1110"),
        (ox.order.grouped, "OX1110"),
        (ox.order.counter, "OX1110"),
        (type(ox.order.linear), "OX1110"),
        (ox.order.custom(3, lambda n: n[0]), "OX1110"),  # type: ignore[arg-type]
        (ox.order.custom(lambda i, n: (i, 0), 3), "OX1110"),  # type: ignore[arg-type]
        (ox.order.custom(lambda i: (i, 0), lambda n: n[0]), "OX1110"),  # type: ignore[arg-type, misc]
        (ox.order.custom(lambda i, n: (i, 0), lambda: 3), "OX1110"),  # type: ignore[arg-type, misc]
        (ox.order.custom(lambda i, n: (i,), lambda n: n[0]), "OX1110"),
        (ox.order.custom(lambda i, n: (i * i, 0), lambda n: n[0]), "OX1022"),
    ],
)
def test_orders_that_are_none(order: Any, rule: str) -> None:
    with pytest.raises(OxidecopyError) as refused:
        visits((8, 8), order)
    assert refused.value.rule == rule


def test_grouped_needs_two_dimensions() -> None:
    with pytest.raises(UsageError):
        visits((8,), ox.order.grouped(2))


@pytest.mark.parametrize(("box", "rule"), [(8, "OX1012"), ((8,), "OX1012"), ((8, 0), "OX1012"), ((8, True), "OX1012"), ([8, 8], "OX1012")])
def test_boxes_that_are_none(box: Any, rule: str) -> None:
    def body(cta: Any, src: Any) -> None:
        for _ in cta.tiles(src, box=box):
            pass

    spec = MapParam(name="src", dtype="f32", box_dim=(8, 8), element_strides=(1, 1))
    with pytest.raises(OxidecopyError) as refused:
        record(body, threads=32, cluster=(1, 1, 1), arguments={"src": spec}, cta=Cta)
    assert refused.value.rule == rule


@pytest.mark.parametrize("per", ["block", "CTA", 1, None])
def test_shares_that_are_none(per: Any) -> None:
    with pytest.raises(UsageError) as refused:
        visits((8, 8), None, per=per)
    assert refused.value.rule == "OX1110"


@pytest.mark.parametrize(
    ("dims", "strides", "box", "fits"), [((6, 8), (3, 2), None, True), ((7, 8), (3, 1), None, False), ((7, 8), (3, 1), (6, 8), True)]
)
def test_boxes_go_on_where_element_strides_leave_off(dims: Box, strides: Box, box: Any, fits: bool) -> None:
    def body(cta: Any, src: Any) -> None:
        for _ in cta.tiles(src, box=box):
            pass

    spec = MapParam(name="src", dtype="f32", box_dim=dims, element_strides=strides)
    if fits:
        assert record(body, threads=32, cluster=(1, 1, 1), arguments={"src": spec}, cta=Cta).steps
        return
    with pytest.raises(OxidecopyError) as refused:
        record(body, threads=32, cluster=(1, 1, 1), arguments={"src": spec}, cta=Cta)
    assert refused.value.rule == "OX1012"
