"""Products on tensor cores against numpy's: types, shapes, majors, epilogues, clusters; and a wait that never ends."""

# mypy: disable-error-code="valid-type, var-annotated, attr-defined, misc"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes  # noqa: F401 - numpy knows its names from then on
import numpy as np
import numpy.typing as npt
import pytest

import oxidecopy as ox
from oxidecopy.conformance.case import Made
from oxidecopy.conformance.records import by_records
from oxidecopy.conformance.run import Launcher, by_engine
from oxidecopy.host.device import Device
from oxidecopy.isa import mma

pytestmark = pytest.mark.gpu
M, N = 328, 264  # neither is a multiple of a tile
Numbers = npt.NDArray[Any]


def pipeline(  # noqa: C901 - the pipeline's body is a function in it
    a_type: Any,
    b_type: Any,
    c_type: Any,
    *,
    box: tuple[int, int] = (128, 128),
    groups: int = 2,
    stages: int = 3,
    staging: int = 2,
    majors: tuple[Any, Any] = ("k", "k"),
    add: bool = False,
    epilogue: Callable[..., Any] | None = None,
) -> Any:
    """Tiles of `box`, by groups that have parts of their rows."""
    depth = 128 * 8 // a_type.info.bits
    left, right, out = (ox.TmaDescriptor[t, ox.D2, ox.Swizzle128B] for t in (a_type, b_type, c_type))

    @ox.pipeline(warps=ox.roles(producer=1, consumers=(4,) * groups))
    def multiply(
        cta: ox.Cta,
        a: left,
        b: right,
        a_tile: left,
        b_tile: right,
        c: out,
        column: ox.GlobalArray[ox.f32, ox.D1],
        row: ox.GlobalArray[ox.f32, ox.D1],
        k: ox.Idx,
    ) -> None:
        ring = cta.ring(stages=stages, tiles=(a_tile, b_tile))
        outs = [cta.store_ring(c, stages=staging) for _ in range(groups)]
        steps = (k + depth - 1) // depth
        work = cta.schedule(c, box=box, order=ox.order.grouped(2))

        def load(slot: Any, desc: Any, at: Any, i: Any, major: str, rows: int) -> None:
            if major == "k":
                slot.load(desc, (at, i * depth))
                return
            for part in range(rows // 64):
                slot.load_part(desc, (i * depth, at + 64 * part), part, of=rows // 64)

        with cta.producer() as leader:
            for y, x in work:
                for i in cta.range(steps):
                    with ring.produce(leader) as (first, second):
                        load(first, a, y, i, majors[0], box[0])
                        load(second, b, x, i, majors[1], box[1])
        more: dict[str, Any] = {} if epilogue is None else {"epilogue": epilogue, "reads": (ox.per_column(column), ox.per_row(row))}
        for me in range(groups):
            with cta.consumers(me) as group:
                for at in work:
                    group.contract(ring, outs[me], at, steps=steps, part=(me, groups), majors=majors, add=add, **more)

    return multiply


def multiplied(
    dev: Device, a_type: Any, b_type: Any, c_type: Any, k: int, *, runs: int = 1, launch: Launcher = by_engine, **options: Any
) -> tuple[Numbers, Numbers, Numbers]:
    """The result, the exact product of what was rounded to the operands' types, and how far tensor cores may be from it."""
    random = np.random.default_rng(k)
    a, b = (random.standard_normal((rows, k), np.float32).astype(t.info.numpy) for rows, t in ((M, a_type), (N, b_type)))
    if a_type is ox.tf32:  # tensor cores leave out what the type has no digits for
        a, b = ((x.view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (a, b))
    majors, box = options.get("majors", ("k", "k")), options.get("box", (128, 128))
    depth, width = 128 * 8 // a_type.info.bits, 128 * 8 // c_type.info.bits
    held = [
        dev.array(np.ascontiguousarray(x.T) if major == "mn" else x, t, pad=True)
        for x, t, major in ((a, a_type, majors[0]), (b, b_type, majors[1]))
    ]
    out = dev.zeros((M, N), c_type)
    vectors = [random.standard_normal(n, np.float32) for n in (N, M)]
    tiled = [
        [
            ox.TmaDescriptor.tiled(x, box=shape, swizzle=ox.Swizzle128B)
            for shape in ((64, 64) if major == "mn" else (rows, depth), (rows, depth))
        ]
        for x, major, rows in zip(held, majors, box, strict=True)
    ]
    bound = pipeline(a_type, b_type, c_type, **options)[5].bind(
        tiled[0][0], tiled[1][0], tiled[0][1], tiled[1][1], ox.TmaDescriptor.tiled(out, box=(64, width), swizzle=ox.Swizzle128B),
        *(dev.array(v, ox.f32) for v in vectors), k,
    )  # fmt: skip
    for _ in range(runs):
        launch(Made(launch=bound, outputs={}), dev)
    exact = runs * (a.astype(np.float64) @ b.astype(np.float64).T)
    if options.get("epilogue") is not None:
        exact = np.maximum(0.5 * exact + vectors[0] - vectors[1][:, None], 0.0)
    magnitude = runs * (np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)).T)
    return out.numpy().astype(np.float64), exact, mma.error_bound(a_type.info.name, k, 1.0) * magnitude


def close(got: Numbers, exact: Numbers, lost: Numbers, digits: int) -> None:
    """Each sum as near as `digits` binary digits of the result say, and what tensor cores may lose on the way."""
    assert (np.abs(got - exact) <= 2.0**-digits * np.abs(exact) + lost).all()


@pytest.mark.parametrize(
    ("a_type", "b_type", "c_type", "digits", "options"),
    [
        (ox.bf16, ox.bf16, ox.bf16, 8, {}),
        (ox.bf16, ox.bf16, ox.f32, 18, {}),
        (ox.f16, ox.f16, ox.f16, 11, {}),
        (ox.bf16, ox.bf16, ox.f32, 18, {"box": (128, 256), "staging": 4}),
        (ox.bf16, ox.bf16, ox.bf16, 8, {"box": (128, 64)}),
        (ox.bf16, ox.bf16, ox.bf16, 8, {"box": (256, 128)}),
        (ox.bf16, ox.bf16, ox.f32, 18, {"box": (64, 128), "groups": 1, "staging": 1}),
        (ox.bf16, ox.bf16, ox.f32, 18, {"majors": ("k", "mn")}),
        (ox.bf16, ox.bf16, ox.f32, 18, {"majors": ("mn", "k")}),
        (ox.f16, ox.f16, ox.f32, 18, {"majors": ("mn", "mn"), "box": (256, 128)}),
        (ox.f16, ox.f16, ox.f32, 18, {"majors": ("mn", "mn"), "box": (128, 256)}),
        (ox.tf32, ox.tf32, ox.f32, 18, {}),
        (ox.e4m3, ox.e4m3, ox.f32, 18, {}),
        (ox.e4m3, ox.e5m2, ox.bf16, 8, {}),
        (ox.e5m2, ox.e4m3, ox.bf16, 8, {"box": (128, 64)}),
        (ox.e4m3, ox.e4m3, ox.f32, 18, {"box": (128, 256)}),
        (ox.e4m3, ox.e5m2, ox.f32, 18, {"box": (256, 128)}),
        (ox.e5m2, ox.e5m2, ox.f32, 18, {}),
        (ox.bf16, ox.bf16, ox.f32, 18, {"add": True, "runs": 2}),
        (ox.bf16, ox.bf16, ox.f32, 18, {"epilogue": lambda s, v, w: (s * 0.5 + v - w).maximum(0.0)}),
        (ox.f16, ox.f16, ox.bf16, 8, {"epilogue": lambda s, v, w: (s * 0.5 + v - w).maximum(0.0).cast(ox.bf16), "box": (256, 128)}),
    ],
)
@pytest.mark.parametrize("launch", [by_engine, by_records])
def test_products(dev: Device, a_type: Any, b_type: Any, c_type: Any, digits: int, options: dict[str, Any], launch: Launcher) -> None:
    for k in (400, 2064):
        close(*multiplied(dev, a_type, b_type, c_type, k, launch=launch, **options), digits)
