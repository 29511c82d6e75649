from __future__ import annotations

from typing import Any, assert_type

import oxidecopy as ox

A = ox.TmaDescriptor[ox.bf16, ox.D2, ox.Swizzle128B]
E4 = ox.TmaDescriptor[ox.e4m3, ox.D2, ox.Swizzle128B]
E5 = ox.TmaDescriptor[ox.e5m2, ox.D2, ox.Swizzle128B]
Half = ox.TmaDescriptor[ox.bf16, ox.D2, ox.Swizzle128B]
Single = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]
Vector = ox.GlobalArray[ox.f32, ox.D1]


def same_types(cta: ox.Cta, a: A, b: A, c: Half, bias: Vector, residual: ox.GlobalArray[ox.bf16, ox.D2]) -> None:
    ring, outs = cta.ring(stages=4, tiles=(a, b)), cta.store_ring(c, stages=2)
    with cta.consumers() as group:
        group.contract(ring, outs, (0, 0), steps=1)
        group.contract(ring, outs, (0, cta.block_idx.x), steps=cta.block_idx.x, part=(0, 2), add=True)
        group.contract(ring, outs, (0, 0), steps=1, majors=("k", "mn"), swapped=True, epilogue=lambda s: s.relu().cast(ox.bf16))
        group.contract(ring, outs, (0, 0), steps=1, epilogue=lambda s, v: (s + v).cast(ox.bf16), reads=(ox.per_row(bias),))
        group.contract(
            ring,
            outs,
            (0, 0),
            steps=1,
            epilogue=lambda s, v, r: (s * v).cast(ox.bf16) + r,
            reads=(ox.per_column(bias), residual),
            cache_hint=ox.cache.evict_first,
        )


def fp8(cta: ox.Cta, a: E4, b: E5, c: Single) -> None:
    ring, outs = cta.ring(stages=4, tiles=(a, b)), cta.store_ring(c, stages=2)
    with cta.consumers() as group:
        group.contract(ring, outs, (0, 0), steps=1)
        group.contract(ring, outs, (0, 0), steps=1, epilogue=lambda s: s * 2)


def one_line(
    dev: ox.Device,
    x: ox.GlobalArray[ox.bf16, tuple[int, int]],
    t: ox.GlobalArray[ox.tf32, tuple[int, int]],
    y: ox.GlobalArray[ox.f16, ox.D2],
    bias: Vector,
) -> None:
    assert_type(ox.matmul(x, x.T), ox.GlobalArray[ox.bf16, tuple[int, int]])
    assert_type(ox.matmul(t, t.T), ox.GlobalArray[ox.f32, tuple[int, int]])
    assert_type(ox.matmul(x, x.T, out=dev.empty((8, 8), ox.f32)), ox.GlobalArray[ox.f32, tuple[int, int]])
    assert_type(ox.matmul(x, x.T, epilogue=lambda s: s.cast(ox.f16)), ox.GlobalArray[ox.f16, tuple[int, int]])
    assert_type(ox.matmul(x, x.T, epilogue=lambda s, b: s + b, reads=(bias,)), ox.GlobalArray[ox.f32, tuple[int, int]])
    assert_type(ox.matmul(y, y.T), ox.GlobalArray[ox.f16, ox.D2])
    assert_type(ox.matmul(x, x.T, explain=True), ox.Explanation[Any])
