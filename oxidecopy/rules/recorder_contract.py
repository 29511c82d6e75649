"""Pages of the recorder's rules about products on tensor cores."""

from __future__ import annotations

from typing import Final

from oxidecopy.rules.rule import Rule

_WGMMA: Final = "PTX 9.7.16.5, wgmma: shapes, element types and matrix descriptors"
_SCRIPT: Final = """\
import ml_dtypes

Op = ox.TmaDescriptor[ox.{dtype}, ox.D2, ox.{swizzle}]


@ox.pipeline(warps=ox.roles(producer=1, consumers={warps}))
def matmul(cta: ox.Cta, a: Op, b: Op, c: ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B], bias: ox.GlobalArray[ox.f32, ox.{rank}]) -> None:
    ring, outs = cta.ring(stages=2, tiles=(a, b)), cta.store_ring(c, stages=2)
    with cta.producer() as leader:
        for at in cta.tiles(c, box=(64, 64)):
            with ring.produce(leader) as (left, right):
                left.load(a, (at[0], 0))
                right.load(b, (at[1], 0))
    with cta.consumers() as group:
        for at in cta.tiles(c, box=(64, 64)):
            {line}


{device}x = dev.array(np.ones((64, 128 // ox.{dtype}.info.nbytes), {numpy}), ox.{dtype})
op = ox.TmaDescriptor.tiled(x, box=(64, x.shape[1]), swizzle=ox.{swizzle})
out = dev.zeros((64, 64), ox.f32)
c = ox.TmaDescriptor.tiled(out, box=({rows}, 32), swizzle=ox.Swizzle128B)
matmul[1](op, op, c, {bias})
"""
_GOOD: Final = {
    "dtype": "bf16",
    "numpy": "ml_dtypes.bfloat16",
    "swizzle": "Swizzle128B",
    "warps": "4",
    "rows": "64",
    "rank": "D1",
    "device": "",
    "bias": "dev.array(np.ones(64, np.float32))",
    "line": "group.contract(ring, outs, at, steps=1)",
}


def script(**edits: str) -> str:
    """A product of two tiles, with these edits."""
    return _SCRIPT.format(**{**_GOOD, **edits})


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="OX1230",
        title="A contraction is computed by a group of four warps, the first of which is a multiple of four",
        error="ScopeError",
        why="wgmma is an instruction of a warpgroup. Several warpgroups share the work by parts of the rows of a, each in its own block.",
        source="PTX 9.7.16, wgmma: warpgroup",
        wrong=script(warps="8"),
        right=script(),
    ),
    Rule(
        id="OX1231",
        title="The ring of a contraction has two tiles of both operands, as the tensor cores read them, and two stages or more",
        error="ShapeError",
        why="A matrix descriptor says where rows of 128 bytes lie under a 128-byte swizzle. A stage is given back when the next one "
        "has been multiplied, so one alone would be waited for for ever.",
        source=_WGMMA,
        wrong=script(swizzle="SwizzleNone"),
        right=script(),
    ),
    Rule(
        id="OX1232",
        title="The operands of a contraction have element types that are multiplied with each other",
        error="DTypeError",
        why="Tensor cores multiply bf16 with bf16, f16 with f16, tf32 with tf32, and both fp8 types with each other; plain f32 is no type "
        "of operands.",
        source=_WGMMA,
        wrong=script(dtype="f32", numpy="np.float32"),
        right=script(dtype="tf32", numpy="np.float32"),
    ),
    Rule(
        id="OX1233",
        title="The results of a contraction are staged in boxes of 64 rows of 128 bytes",
        error="ShapeError",
        why="The rows of a warpgroup's sums come in blocks of 64, and stores of 128 bytes a row under a swizzle meet no bank conflicts.",
        source="the layout of wgmma's sums: PTX 9.7.16.5.1",
        wrong=script(rows="32"),
        right=script(),
    ),
    Rule(
        id="OX1234",
        title="What an epilogue reads lies beside its result: vectors along its rows or columns, and arrays with as many dimensions",
        error="RecordError",
        why="Each element reads what is at its own place in global memory; how a vector is spread has to be said.",
        source="MmaOut in the op table",
        wrong=script(line="group.contract(ring, outs, at, steps=1, epilogue=lambda s, v: s + v, reads=(bias,))"),
        right=script(line="group.contract(ring, outs, at, steps=1, epilogue=lambda s, v: s + v, reads=(ox.per_column(bias),))"),
    ),
    Rule(
        id="OX1235",
        title="A group has a part of the rows of a, by its number among equal ones",
        error="ShapeError",
        why="Groups that share a stage each multiply their own rows; the corner of the result is that of all of them.",
        source="the surface: `part=(number, of)`",
        wrong=script(line="group.contract(ring, outs, at, steps=1, part=(1, 1))"),
        right=script(line="group.contract(ring, outs, at, steps=1, part=(0, 1))"),
    ),
    Rule(
        id="OX1236",
        title="A store ring is filled by contractions or by hand, not both",
        error="ScopeError",
        why="A contraction's warpgroup stays together from the first product to the last store; `put` elects a thread of it.",
        source="design of the store ring",
        wrong=script(line="group.contract(ring, outs, at, steps=1)\n            with outs.put(group, at) as tile: group.fill(tile, 0)"),
        right=script(),
    ),
)
