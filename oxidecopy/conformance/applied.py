"""Maps over the tiles that a counter deals to the rings of CTAs that stay, as `oxidecopy.engines.cuda.code.apply` runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made, random_bits
from oxidecopy.conformance.copies import Map, Pipe

if TYPE_CHECKING:
    from oxidecopy.host.device import Device
    from oxidecopy.typed.dtypes import DType

_CTAS: Final = 3
_SWIZZLES: Final = {32: ox.Swizzle32B, 64: ox.Swizzle64B, 128: ox.Swizzle128B}  # by the bytes of a row


@final
class Plan(NamedTuple):
    """A map, and how it is run. A box has as many bytes in each stage as a counter is asked for at a time.

    Attributes:
        fn: of elements of `inputs`, and of a scalar of f32.
        inputs: their types; of the box's shape, but for those that `spread` says are vectors along its "row" or "column".
        out: the type that the function gives.
    """

    fn: Callable[..., Any]
    inputs: tuple[type[DType], ...]
    out: type[DType]
    box: tuple[int, ...] = (16, 256)
    shape: tuple[int, ...] = (150, 592)
    stages: int = 2
    staged: int = 2
    warps: int = 8
    spread: tuple[str, ...] = ()

    def along(self, i: int) -> str:
        """How input `i` is spread over a box."""
        return self.spread[i] if i < len(self.spread) else ""


def _long(v: Any, s: Any) -> Any:
    """More instructions than lie in a warp's lanes."""
    for i in range(12):
        v = (v * (1.0 - 0.125 * i) + s).maximum(0.5 * i - 4)
    return v.cast(ox.f16)


PLANS: Final = {
    "two of f32 to bf16": Plan(lambda a, b, s: (a * s + b * 0.25 - 1).relu().cast(ox.bf16), (ox.f32, ox.f32), ox.bf16),
    "a cast, stored from one place": Plan(lambda a, _: a.cast(ox.bf16), (ox.f32,), ox.bf16, staged=1),
    "bits": Plan(lambda a, _: a, (ox.u8,), ox.u8, box=(64, 256)),
    "integers, three stages": Plan(lambda a, b, _: (a & b) + (a ^ 3), (ox.i32, ox.i32), ox.i32, stages=3, staged=1),
    "values that are used twice": Plan(lambda a, b, s: (a - b) * (a - b) + (a - b).maximum(s) * b, (ox.f32, ox.f32), ox.f32),
    "a long function": Plan(_long, (ox.f32,), ox.f16),
    "a select": Plan(lambda a, s: (a * a < 4.0).select(a.sqrt(), a * s), (ox.f32,), ox.f32),
    "parts of turns": Plan(lambda a, s: a + s, (ox.f32,), ox.f32, box=(33, 128), shape=(140, 300), warps=3),
    "fewer elements than lanes": Plan(lambda a, s: a * s, (ox.f32,), ox.f32, box=(16, 256), warps=12),
    "swizzles": Plan(lambda a, b, s: (a + b * s).cast(ox.bf16), (ox.f32, ox.f32), ox.bf16, box=(128, 32), shape=(500, 96)),
    "vectors": Plan(
        lambda a, r, c, s: (a * r.cast(ox.f32) + c * s).cast(ox.bf16), (ox.f32, ox.f16, ox.f32), ox.bf16, spread=("", "row", "column")
    ),
    "three dimensions": Plan(lambda a, s: a * s, (ox.f32,), ox.f32, box=(4, 16, 64), shape=(9, 40, 152)),
    "five dimensions": Plan(lambda a, _: a.cast(ox.f32), (ox.bf16,), ox.f32, box=(2, 2, 4, 8, 64), shape=(3, 4, 5, 9, 72)),
    "fewer tiles than stages": Plan(lambda a, s: a * s, (ox.f32,), ox.f32, shape=(64, 256), stages=4),
}


def applied(plan: Plan) -> Pipe:
    """The pipeline of a plan."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=plan.warps))
    def apply(cta: ox.Cta, a: Map, b: Map, c: Map, dst: Map, scale: ox.Scalar[ox.f32]) -> None:
        sources: Any = (a, b, c)[: len(plan.inputs)]
        ring: ox.Ring[Any, Any] = cta.ring(stages=plan.stages, tiles=sources)
        outs = cta.store_ring(dst, stages=plan.staged)
        work = cta.schedule(dst, order=ox.order.counter())
        with cta.producer() as leader:
            for at in work:
                with ring.produce(leader) as slots:
                    for i, (slot, src) in enumerate(zip(slots, sources, strict=True)):
                        slot.load(src, {"": at, "row": at[:1], "column": at[-1:]}[plan.along(i)])
        with cta.consumers() as group:
            for stage in ring.stages(group, work):
                spread: Any = {"": lambda tile: tile, "row": ox.per_row, "column": ox.per_column}
                tiles = [spread[plan.along(i)](tile) for i, tile in enumerate(stage.tiles)]
                with outs.put(group, stage.at) as made:
                    group.map(lambda *v: plan.fn(*v, scale), *tiles, out=made)

    return apply


def made(plan: Plan, dev: Device) -> Made:
    """The launch on random bits."""
    maps: Any = ox.TmaDescriptor.tiled
    descriptors = []
    for i, dtype in enumerate(plan.inputs):
        cut = {"": slice(None), "row": slice(0, 1), "column": slice(-1, None)}[plan.along(i)]
        shape, box = plan.shape[cut], plan.box[cut]
        swizzle = _SWIZZLES.get(box[-1] * dtype.info.nbytes, ox.SwizzleNone) if len(box) > 1 else ox.SwizzleNone
        descriptors.append(maps(dev.array(random_bits(dtype, shape, i + 1), dtype), box=box, swizzle=swizzle))
    out = dev.zeros(plan.shape, plan.out)
    descriptors += descriptors[:1] * (3 - len(descriptors))
    return Made(launch=applied(plan)[_CTAS].bind(*descriptors, maps(out, box=plan.box), 1.7), outputs={"out": out})


def cases() -> Iterator[Case]:
    """All of this module, whole programs as such and as records."""
    for name, plan in PLANS.items():
        for records in (False, True):
            group = "maps over rings as records" if records else "maps over rings"
            yield Case(name=name, group=group, make=partial(made, plan), emitted=not records, records=records)
