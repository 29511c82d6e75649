"""`group.contract`: what is refused while it is recorded, and what a recording holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.errors import OxidecopyError
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const
from oxidecopy.isa.ops import ArrayRef, CacheHint, Part

Op = ox.TmaDescriptor[ox.bf16, ox.D2, ox.Swizzle128B]
Call = Callable[..., None]


def recorded(call: Call, *, warps: tuple[int, ...] = (4, 4), stages: int = 2, **boxes: Any) -> Any:
    """A pipeline in which each group does `call(group, ring, outs, me, bias, whole)` once, for one stage of 128 x 64 and 64 x 64."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=warps))
    def kernel(cta: ox.Cta, a: Op, b: Op, c: Op, bias: ox.GlobalArray[ox.f32, ox.D1], whole: ox.GlobalArray[ox.f32, ox.D2]) -> None:
        ring, outs = cta.ring(stages=stages, tiles=(a, b)), [cta.store_ring(c, stages=2) for _ in warps]
        with cta.producer() as leader, ring.produce(leader) as (left, right):
            left.load(a, (0, 0))
            right.load(b, (0, 0))
        for me in range(len(warps)):
            with cta.consumers(me) as group:
                call(group, ring, outs[me], me, bias, whole)

    dev = ox.Device.open("sim-fast")
    made = {"a": (128, 64), "b": (64, 64), "c": (64, 64), **boxes}
    maps = {n: ox.TmaDescriptor.tiled(dev.zeros((128, 64), ox.bf16), box=box, swizzle=ox.Swizzle128B) for n, box in made.items()}
    return kernel[1].bind(**maps, bias=dev.zeros((64,), ox.f32), whole=dev.zeros((128, 64), ox.f32))


def plain(group: Any, ring: Any, outs: Any, me: int, *_: Any) -> None:
    group.contract(ring, outs, (0, 0), steps=1, part=(me, 2))


def test_what_is_recorded() -> None:
    def call(group: Any, ring: Any, outs: Any, me: int, bias: Any, whole: Any) -> None:
        reads = (ox.per_column(bias), whole)
        group.contract(
            ring, outs, (0, 0), steps=1, part=(me, 2), epilogue=lambda s, b, w: (s * b - w).cast(ox.bf16), reads=reads, add=True,
            cache_hint=ox.cache.evict_first,
        )  # fmt: skip

    found = [step.op for step in recorded(call).program.walk() if isinstance(step.op, ops.Contract)]
    assert [op.a.part for op in found] == [Part(Const(0), 2), Part(Const(1), 2)]
    assert [op.coords for op in found] == [(Const(0), Const(0)), (Const(64), Const(0))]
    assert all(op.arrays == (ArrayRef("bias"), ArrayRef("whole")) for op in found)
    assert {(op.lane, op.threads, op.number, op.combine, op.depth) for op in found} == {(0, 128, 1, "add", 64), (128, 128, 2, "add", 64)}
    assert found[0].hint == CacheHint("evict_first")
    assert found[0].out.tile != found[1].out.tile


WRONG: list[tuple[str, Call]] = [
    ("OX1231", lambda g, r, o, *_: g.contract(r, o, (0, 0), steps=1, majors=("k", "n"))),
    ("OX1231", lambda g, r, o, *_: g.contract(r, o, (0, 0), steps=1, majors="k")),
    ("OX1231", lambda g, r, o, *_: g.contract(r, o, (0, 0), steps=1, part=(0, 3))),
    ("OX1231", lambda g, r, o, *_: g.contract(r, o, (0, 0), steps=1, part=(0, 4))),
    ("OX1235", lambda g, r, o, *_: g.contract(r, o, (0, 0), steps=1, part=2)),
    ("OX1235", lambda g, r, o, *_: g.contract(r, o, (0, 0), steps=1, part=(2, 2))),
    ("OX1013", lambda g, r, o, *_: g.contract(r, o, (0, 0, 0), steps=1)),
    ("OX1234", lambda g, r, o, *_: g.contract(r, o, (0, 0), steps=1, reads=7)),
    ("OX1234", lambda g, r, o, m, b, w: g.contract(r, o, (0, 0), steps=1, epilogue=lambda s, v: s.cast(ox.bf16), reads=(w,))),
    ("OX1125", lambda g, r, o, m, b, w: g.contract(r, o, (0, 0), steps=1, epilogue=lambda s: s.cast(ox.bf16), reads=(w,))),
    ("OX1125", lambda g, r, o, *_: g.contract(r, o, (0, 0), steps=1, epilogue=lambda s: 1.0)),
    ("OX1126", lambda g, r, o, *_: g.contract(r, o, (0, 0), steps=1, epilogue=lambda s: s)),
    ("OX1009", lambda g, r, o, *_: g.contract(o, r, (0, 0), steps=1)),
    ("OX1009", lambda g, r, o, *_: g.contract(r, o, (0, 0), steps=1, epilogue=lambda s, v: s + v, reads=(1.0,))),
    ("OX5016", lambda g, r, o, *_: g.contract(r, o, (0, 0), steps=1, add=1)),
]


@pytest.mark.parametrize(("rule", "call"), WRONG)
def test_what_is_refused(rule: str, call: Call) -> None:
    with pytest.raises(OxidecopyError) as caught:
        recorded(call)
    assert rule in caught.value.rules


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        ("OX1230", {"warps": (8,)}),
        ("OX1230", {"warps": (3, 4)}),
        ("OX1231", {"stages": 1}),
        ("OX1231", {"a": (32, 64)}),
        ("OX1231", {"b": (60, 64)}),
        ("OX1233", {"c": (32, 64)}),
    ],
)
def test_shapes_that_do_not_fit(rule: str, options: dict[str, Any]) -> None:
    with pytest.raises(OxidecopyError) as caught:
        recorded(plain, **options)
    assert rule in caught.value.rules


def test_it_runs() -> None:
    recorded(plain)()
