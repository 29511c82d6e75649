"""Descriptors that the device replaces, as they are recorded, and the mistakes that a checker would have refused."""

from __future__ import annotations

from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.errors import OxidecopyError
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const, Expr, Sym, SymKind, add, sub
from oxidecopy.isa.ops import ArrayRef, MapRef, SlotRef, TileRef
from oxidecopy.program.program import ArrayParam, MapParam
from oxidecopy.typed.symbolic import to_expr
from tests.helpers.recordings import recorded

PARAMS = {
    "src": MapParam(name="src", dtype="f32", box_dim=(8, 32), element_strides=(1, 1)),
    "x": ArrayParam(name="x", dtype="f32", rank=2),
    "slots": ArrayParam(name="slots", dtype="u8", rank=2),
}
BX = Sym("block_idx.x", SymKind.BLOCK)


def given(**other: Any) -> dict[str, Any]:
    return PARAMS | other


def test_what_is_recorded() -> None:
    shapes = []

    def pipe(cta: ox.Cta, src: Any, x: Any, slots: Any) -> None:
        slot, other = cta.tensormap(src, slots), cta.tensormap(src, slots)
        tile = cta.shared(src)
        with cta.warps(1, 2) as warp:
            with warp.elect() as leader:
                draft = slot.edit(leader)
                draft.replace(leader, x, (cta.block_idx.x, 0), (cta.block_idx.x + 3, x.shape[1]))
                plain = other.edit(leader)
            released = draft.cp_fenceproxy(warp)
            same = plain.cp_fenceproxy(warp)
            with warp.elect() as leader:
                desc, unchanged = released.acquire(leader), same.acquire(leader)
                shapes.extend([desc.shape, unchanged.shape])
                desc.s2g(leader, tile, (0, 0))
                unchanged.prefetch(leader, (0, 0))

    made = recorded(pipe, **given())
    copy, point, _, release, _, acquire, _, store, fetch = [s.op for s in made.walk() if not isinstance(s.op, ops.Scope)]
    tile = TileRef(0, Const(0))
    assert copy == ops.TensormapCopy(map=MapRef("src"), tile=tile)
    inner = Sym("x.dim[1]", SymKind.EXTENT)
    first: tuple[Expr, ...] = (BX, Const(0))
    stop: tuple[Expr, ...] = (add(BX, Const(3)), inner)
    assert point == ops.TensormapReplaceArray(array=ArrayRef("x"), first=first, stop=stop, tile=tile)
    assert release == ops.TensormapCpFenceproxy(slot=SlotRef("slots", 0), tile=tile)
    assert acquire == ops.FenceProxyTensormap(slot=SlotRef("slots", 0))
    assert isinstance(store, ops.TensorS2G)
    assert store.map == MapRef("src", None, SlotRef("slots", 0))
    assert isinstance(fetch, ops.TensorPrefetch)
    assert fetch.map.slot == SlotRef("slots", 1)
    assert [to_expr(e, "an extent") for e in shapes[0]] == [sub(b, a) for a, b in zip(first, stop, strict=True)]
    assert [to_expr(e, "an extent") for e in shapes[1]] == [Sym(f"src.dim[{i}]", SymKind.EXTENT) for i in range(2)]
    assert [(t.dtype, t.shape, t.align, t.stages) for t in made.tiles[:2]] == [("u8", (128,), 128, 1)] * 2


def rule_of(fn: Any, params: dict[str, Any]) -> str:
    """The rule that a recording breaks, "" for none; the error is at a line of this file and says what to do."""
    try:
        recorded(fn, **params)
    except OxidecopyError as error:
        (found,) = error.diagnostics
        assert found.fix
        assert found.site is not None
        assert found.site.file == __file__
        return found.rule
    return ""


def wrong(what: str) -> Any:  # noqa: C901 - a line for each mistake
    def pipe(cta: ox.Cta, src: Any, x: Any, slots: Any) -> None:  # noqa: C901
        if what == "in a loop":
            for _ in cta.range(3):
                cta.tensormap(src, slots)
        slot = cta.tensormap(src[0] if what == "entry" else src, x if what == "not bytes" else slots)
        with cta.warps(0, 2 if what == "two warps" else 1) as warp:
            with warp.elect() as leader:
                draft = slot.edit(warp if what == "group edits" else leader)  # type: ignore[arg-type]
                if what == "edited anew":
                    slot.edit(leader)
                draft.replace(leader, x, (0, 0) if what != "short" else (0,), (3, 32))
                if what == "elected releases":
                    draft.cp_fenceproxy(warp)
            released = draft.cp_fenceproxy(leader if what == "leader releases" else warp)  # type: ignore[arg-type,oxidecopy-scope,oxidecopy-moved]
            if what == "released twice":
                draft.cp_fenceproxy(warp)  # type: ignore[oxidecopy-moved]
            if what == "edited after":
                with warp.elect() as leader:
                    draft.replace(leader, x, (0, 0), (3, 32))
            with warp.elect() as leader:
                desc = released.acquire(leader)
                if what == "again a slot":
                    cta.tensormap(desc, slots)
                again = slot.edit(leader)
            if what in ("stale", "stale release"):
                again.cp_fenceproxy(warp)
            with warp.elect() as leader:
                if what == "stale release":
                    released.acquire(leader)
                desc.prefetch(leader, (0, 0))
                if what == "array":
                    repr(desc.array)

    return pipe


@pytest.mark.parametrize(
    ("what", "rule"),
    [
        ("", ""),
        ("in a loop", "OX1069"),
        ("not bytes", "OX1171"),
        ("again a slot", "OX1171"),
        ("two warps", "OX1172"),
        ("elected releases", "OX1172"),
        ("leader releases", "OX1009"),
        ("group edits", "OX1014"),
        ("edited anew", "OX1170"),
        ("released twice", "OX1170"),
        ("edited after", "OX1170"),
        ("short", "OX1013"),
        ("stale", "OX1174"),
        ("stale release", "OX1174"),
        ("array", "OX1060"),
    ],
)
def test_what_is_refused(what: str, rule: str) -> None:
    assert rule_of(wrong(what), given()) == rule


@pytest.mark.parametrize(
    ("param", "rule"),
    [
        ({"src": MapParam(name="src", dtype="f32", box_dim=(8, 32), element_strides=(1, 1), entries=2)}, "OX1171"),
        ({"src": MapParam(name="src", dtype="f32", box_dim=(4, 1, 2, 8), element_strides=(1,) * 4, interleave="16B")}, "OX1171"),
        ({"src": MapParam(name="src", dtype="u4x16_align8b", box_dim=(8, 32), element_strides=(1, 1))}, "OX1171"),
        ({"x": ArrayParam(name="x", dtype="f16", rank=2)}, "OX1011"),
        ({"x": ArrayParam(name="x", dtype="f32", rank=3)}, "OX1173"),
        ({"slots": ArrayParam(name="slots", dtype="u8", rank=1)}, "OX1171"),
        ({"slots": ArrayParam(name="slots", dtype="i32", rank=2)}, "OX1171"),
    ],
    ids=str,
)
def test_parameters_that_do_not_fit(param: dict[str, Any], rule: str) -> None:
    what = "entry" if rule == "OX1171" and getattr(param.get("src"), "entries", None) else ""
    assert rule_of(wrong(what), given(**param)) == rule


def test_a_block_has_so_many_slots() -> None:
    def pipe(cta: ox.Cta, src: Any, x: Any, slots: Any) -> None:
        for _ in range(65):
            cta.tensormap(src, slots)

    assert rule_of(pipe, given()) == "OX1171"
