"""Random products: what is recognised as a whole says what the program does, event by event, and so do the records of what is not."""

# mypy: disable-error-code="valid-type, var-annotated, attr-defined, misc"

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final, NamedTuple

from hypothesis import Phase, event, given, note, settings
from hypothesis import strategies as st

import oxidecopy as ox
from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.code import encode_program
from oxidecopy.errors import DeviceCodeError
from oxidecopy.host.bound import BoundLaunch
from oxidecopy.isa import mma
from tests.helpers.device_agreement import compare
from tests.helpers.device_product import compare_product

FEW: Final = settings(phases=(Phase.explicit, Phase.reuse, Phase.generate))
TYPES: Final = {"bf16": (ox.bf16, ox.bf16), "f16": (ox.f16, ox.f16), "tf32": (ox.tf32, ox.tf32), "e4m3": (ox.e4m3, ox.e5m2)}
OUTS: Final[dict[str, Any]] = {"f32": ox.f32, "bf16": ox.bf16, "f16": ox.f16}
EPILOGUES: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "bias, relu": lambda s, v: (s + v).relu(),
    "rounded between": lambda s, v: (s * 0.5).cast(ox.bf16).cast(ox.f32) - v,
    "a root": lambda s, v: (s - v).sqrt(),  # not compiled
}
ROOM: Final = 225 << 10  # bytes of tiles
SUMS: Final = ((64, 64), (64, 128), (64, 256), (128, 128), (64, 192))
FEEDS: Final = ("range", "range", "constant", "reversed", "two loops", "strided", "halved", "from the tile on", "unrolled")
BY_HAND: Final = "by hand"


class Plan(NamedTuple):
    """A product of `extents` M, N and K."""

    types: str
    out: str
    m: int
    n: int
    groups: int
    stages: int
    staged: int
    majors: tuple[str, str]
    down: int  # CTAs of a cluster
    across: int
    batch: int  # 0: matrices
    batched: bool  # b has a batch as well
    extents: tuple[int, int, int]
    workers: int
    walk: (
        str | int | tuple[tuple[int, ...], ...]
    )  # an order of tiles, rows of a grouped one, or of each CTA's every tile the order of its loads
    feed: str  # how the producer goes along K
    epilogue: str

    @property
    def depth(self) -> int:
        return mma.depth_of(self.types)

    @property
    def rows(self) -> int:
        return self.m * self.groups

    @property
    def steps(self) -> int:
        return -(-self.extents[2] // self.depth)

    @property
    def room(self) -> int:
        return 128 * self.stages * (self.rows + self.n) + 64 * 128 * self.groups * self.staged

    @property
    def ones(self) -> tuple[int, ...]:
        return (1,) if self.batch else ()


def plan_of(seed: int) -> Plan:
    """By a generator of ours, as rare kinds would be rarer yet by hypothesis'."""
    random = Random(seed)
    types, (m, n), groups = random.choice(("bf16", "bf16", *TYPES)), random.choice(SUMS), random.randint(1, 2)
    down, across, batch = random.choice(((1, 1, 0), (1, 1, 0), (1, 1, 1), (1, 1, 3), (2, 1, 0), (2, 1, 2), (1, 2, 0), (4, 1, 0), (2, 2, 0)))
    majors = ("k",) if types not in mma.TRANSPOSABLE else ("k", "mn")
    walks: list[Any] = ["linear", "schedule"]
    if not batch:
        walks += [1, 2, 3]
    if not batch and down * across == 1:
        parts = tuple(range(groups * m // 64))
        walks += [BY_HAND, *[tuple([random.choice((parts, parts[::-1])) for _ in range(random.randint(1, 3))])] * 5]
    plan = Plan(
        types=types,
        out=random.choice(list(OUTS)),
        m=m,
        n=n,
        groups=groups,
        stages=random.randint(2, 4),
        staged=random.randint(1, 2),
        majors=("k" if across > 1 else random.choice(majors), "k" if down > 1 else random.choice(majors)),
        down=down,
        across=across,
        batch=batch,
        batched=bool(batch) and random.random() < 0.5,
        extents=(random.randint(1, 2 * m * groups * down + 80), random.randint(1, 2 * n * across + 80), random.randint(1, 5 * 64)),
        workers=random.randint(1, 4),
        walk=random.choice(walks),
        feed=random.choice(FEEDS),
        epilogue=random.choice(("", "", "", *EPILOGUES)),
    )
    return plan if plan.room <= ROOM else plan_of(seed + 1)


# ---- the program
def launch_of(plan: Plan) -> BoundLaunch:
    down, across, size = plan.down, plan.across, plan.down * plan.across
    roles = ox.roles(producer=1, consumers=(4,) * plan.groups)

    def body(cta: Any, a: Any, b: Any, c: Any, a_tile: Any, b_tile: Any, v: Any) -> None:
        ring = ring_of(plan, cta, a_tile, b_tile)
        below = (cta.cta_rank if across == 1 else cta.cta_rank % down) if down > 1 else 0
        beside = (cta.cta_rank if down == 1 else cta.cta_rank // down) if across > 1 else 0
        shift = (below * plan.rows, beside * plan.n)
        outs = [cta.store_ring(c, stages=plan.staged) for _ in range(plan.groups)]
        along = plan.extents[2] if plan.feed == "constant" else a.shape[-1 if plan.majors[0] == "k" else -2]
        steps = (along + plan.depth - 1) // plan.depth if plan.feed != "unrolled" else plan.steps
        places = places_of(plan, cta, c)
        with cta.producer() as leader:
            for (*batch, row, column), order in places():
                for k in along_k(plan, cta, steps, row):
                    with ring.produce(leader) as slots:
                        left, right = slots[::-1] if down > 1 and across == 1 else slots
                        load(left, a, (batch, row + shift[0], k), plan.majors[0], (plan.m, plan.groups), order)
                        load(right, b, (batch if plan.batched else [], column + shift[1], k), plan.majors[1], (plan.n, 1), None)
        more: dict[str, Any] = {}
        if plan.epilogue:
            more = {"epilogue": lambda s, v: EPILOGUES[plan.epilogue](s, v).cast(OUTS[plan.out]), "reads": (ox.per_column(v),)}
        for me in range(plan.groups):
            with cta.consumers(me) as group:
                for (*batch, row, column), _ in places():
                    at = (*batch, row + shift[0], column + shift[1])
                    group.contract(ring, outs[me], at, steps=steps, part=(me, plan.groups), majors=plan.majors,
                        swapped=down > 1 and across == 1, **more,
                    )  # fmt: skip
        if size > 1:
            cta.cluster_sync()

    types = dict.fromkeys(("a", "b", "c", "a_tile", "b_tile"), ox.TmaDescriptor) | {"v": ox.GlobalArray}
    body.__annotations__ = {"cta": ox.ClusterCta if size > 1 else ox.Cta, **types}
    both = down > 1 and across > 1
    decorate: Any = ox.pipeline(warps=roles, cluster=(down, across) if both else size) if size > 1 else ox.pipeline(warps=roles)
    grid = (down, across, plan.workers) if both else plan.workers * size
    made: BoundLaunch = decorate(body)[grid].bind(*arguments(plan))
    return made


def ring_of(plan: Plan, cta: Any, a_tile: Any, b_tile: Any) -> Any:
    match plan.down > 1, plan.across > 1:
        case False, False:
            return cta.ring(stages=plan.stages, tiles=(a_tile, b_tile))
        case True, True:
            return cta.multicast_ring(stages=plan.stages, tiles=(a_tile, b_tile), along=("y", "x"))
        case True, False:
            return cta.multicast_ring(stages=plan.stages, tiles=(b_tile,), own=(a_tile,), axis=-2)
        case _:
            return cta.multicast_ring(stages=plan.stages, tiles=(a_tile,), own=(b_tile,), axis=-2)


def places_of(plan: Plan, cta: Any, c: Any) -> Callable[[], Iterator[tuple[Any, Any]]]:
    """Corners of tiles, each with the order of its loads."""
    box = (*plan.ones, plan.rows * plan.down, plan.n * plan.across)
    per = "cluster" if plan.down * plan.across > 1 else "cta"
    if plan.walk == "schedule":
        work = cta.schedule(c, box=box, per=per)
        return lambda: ((at, None) for at in work)

    def places() -> Iterator[tuple[Any, Any]]:
        if isinstance(plan.walk, tuple):
            first = cta.block_idx.x * len(plan.walk)
            yield from ((((first + i) * plan.rows, 0), order) for i, order in enumerate(plan.walk))
        elif plan.walk == BY_HAND:
            across = (c.shape[1] + plan.n - 1) // plan.n
            count = (c.shape[0] + plan.rows - 1) // plan.rows * across
            for turn in cta.range((count - cta.block_idx.x + cta.grid_dim.x - 1) // cta.grid_dim.x):
                i = cta.block_idx.x + turn * cta.grid_dim.x
                yield (i // across * plan.rows, i % across * plan.n), None
        else:
            order = ox.order.grouped(plan.walk) if isinstance(plan.walk, int) else ox.order.linear
            yield from ((at, None) for at in cta.tiles(c, box=box, per=per, order=order))

    return places


def along_k(plan: Plan, cta: Any, steps: Any, row: Any) -> Iterator[Any]:
    """Where each stage begins."""
    match plan.feed:
        case "reversed":
            yield from ((steps - 1 - i) * plan.depth for i in cta.range(steps))
        case "two loops":
            yield from (i * plan.depth for i in cta.range(steps // 2))
            yield from (i * plan.depth for i in cta.range(steps // 2, steps))
        case "strided":
            yield from (i * (plan.depth // 2) for i in cta.range(0, 2 * steps, 2))
        case "halved":
            yield from (i // 2 * plan.depth for i in cta.range(steps))
        case "from the tile on":
            yield from (i * plan.depth + row for i in cta.range(steps))
        case "unrolled":
            yield from (i * plan.depth for i in range(steps))
        case _:
            yield from (i * plan.depth for i in cta.range(steps))


def load(slot: Any, src: Any, at: tuple[Any, Any, Any], major: str, size: tuple[int, int], order: tuple[int, ...] | None) -> None:
    """One operand of a stage, by as many loads as it has boxes."""
    (batch, first, k), (rows, groups) = at, size
    if major == "mn":
        blocks = rows * groups // 64
        for i in order or range(blocks):
            slot.load_part(src, (*batch, k, first + i * 64), i, of=blocks)
    elif batch and groups > 1:
        for i in range(groups):
            slot.load_part(src, (*batch, first + i * rows, k), i, of=groups)
    elif order is not None:
        for i in order:
            slot.load_part(src, (first + i * 64, k), i, of=len(order))
    else:
        slot.load(src, (*batch, first, k))


def arguments(plan: Plan) -> tuple[Any, ...]:
    dev: Any = ox.Device.open("sim")
    (m, n, k), batch = plan.extents, (plan.batch,) * bool(plan.batch)
    pieces = plan.groups if batch else plan.rows // 64 if isinstance(plan.walk, tuple) else 1
    (a_type, b_type), (a_major, b_major) = TYPES[plan.types], plan.majors
    a, a_tile = operand(matrix(dev, a_type, batch, m, k, a_major), a_major, plan.rows // plan.across, pieces, plan.depth)
    b, b_tile = operand(matrix(dev, b_type, batch if plan.batched else (), n, k, b_major), b_major, plan.n // plan.down, 1, plan.depth)
    out = dev.empty((*batch, m, n), OUTS[plan.out], pad=True)
    c = ox.TmaDescriptor.tiled(out, box=(*plan.ones, 64, 128 // OUTS[plan.out].info.nbytes), swizzle=ox.Swizzle128B)
    return a, b, c, a_tile, b_tile, dev.empty((n,), ox.f32)


def matrix(dev: Any, dtype: Any, batch: tuple[int, ...], rows: int, k: int, major: str) -> Any:
    return dev.empty((*batch, *((rows, k) if major == "k" else (k, rows))), dtype, pad=True)


def operand(array: Any, major: str, rows: int, pieces: int, depth: int) -> tuple[Any, Any]:
    """What it is loaded through, and what has the shape of its tile."""
    ones = (1,) * (len(array.shape) - 2)
    if major == "mn":
        boxes = (*ones, depth, 64), (rows // 64, depth, 64) if ones else (rows // 64 * depth, 64)
    else:
        boxes = (*ones, rows // pieces, depth), (pieces, rows // pieces, depth) if ones else (rows, depth)
    tiled: Any = ox.TmaDescriptor.tiled
    through, tile = (tiled(array, box=box, swizzle=ox.Swizzle128B) for box in boxes)
    return through, tile


# ---- the property
@FEW
@given(st.integers(0, 1 << 40))
def test_device_code_does_what_the_product_does(seed: int) -> None:
    plan = plan_of(seed)
    note(plan)
    bound = launch_of(plan)
    try:
        image = encode_program(bound.program, bound.launch)
    except DeviceCodeError as error:
        refused = error.rules
    else:
        refused = ()
        compare_any = compare if image.family == abi.MMA_FAMILY else compare_product
        compare_any(bound.program, bound.launch, image)
        event(image.left.partition(" (")[0] or image.family)
    assert refused in {(), ("OX5569",)}
    assert plan.n == 192 or not refused
