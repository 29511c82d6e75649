from __future__ import annotations

import oxidecopy as ox

A = ox.TmaDescriptor[ox.bf16, ox.D2, ox.Swizzle128B]
H = ox.TmaDescriptor[ox.f16, ox.D2, ox.Swizzle128B]
F = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]
Half = ox.TmaDescriptor[ox.bf16, ox.D2, ox.Swizzle128B]
Batch = ox.TmaDescriptor[ox.bf16, ox.D3, ox.Swizzle128B]
Vector = ox.GlobalArray[ox.f32, ox.D1]


def pairs(cta: ox.Cta, a: A, h: H, f: F, c: Half) -> None:
    outs = cta.store_ring(c, stages=2)
    mixed, plain, one = cta.ring(stages=4, tiles=(a, h)), cta.ring(stages=4, tiles=(f, f)), cta.ring(stages=4, tiles=(a,))
    with cta.consumers() as group:
        group.contract(mixed, outs, (0, 0), steps=1)  # E
        group.contract(plain, outs, (0, 0), steps=1)  # E
        group.contract(one, outs, (0, 0), steps=1)  # E


def results(cta: ox.Cta, a: A, c: Half, whole: Batch, ints: ox.TmaDescriptor[ox.i32, ox.D2, ox.Swizzle128B], bias: Vector) -> None:
    ring, outs, batch = cta.ring(stages=4, tiles=(a, a)), cta.store_ring(c, stages=2), cta.store_ring(whole, stages=2)
    numbers = cta.store_ring(ints, stages=2)
    with cta.consumers() as group:
        group.contract(ring, outs, (0, 0, 0), steps=1)  # E
        group.contract(ring, batch, (0, 0), steps=1)  # E
        group.contract(ring, numbers, (0, 0), steps=1)  # E
        group.contract(ring, outs, (0, 0), steps=1, epilogue=lambda s: s * 2)  # E
        group.contract(ring, outs, (0, 0), steps=1, epilogue=lambda s, v: (s + v).cast(ox.bf16))  # E
        group.contract(ring, outs, (0, 0), steps=1, epilogue=lambda s, v: (s + v).cast(ox.bf16), reads=(bias,))  # E
        group.contract(ring, outs, (0, 0), steps=1, majors=("k", "m"))  # E
        group.contract(ring, outs, (0, 0))  # E
    with cta.producer() as leader:
        leader.contract(ring, outs, (0, 0), steps=1)  # E


def fp8_is_k_major(cta: ox.Cta, a: ox.TmaDescriptor[ox.e4m3, ox.D2, ox.Swizzle128B], c: Half) -> None:
    ring, outs = cta.ring(stages=4, tiles=(a, a)), cta.store_ring(c, stages=2)
    with cta.consumers() as group:
        group.contract(ring, outs, (0, 0), steps=1, majors=("k", "mn"))  # E


def one_line(
    x: ox.GlobalArray[ox.bf16, tuple[int, int]], y: ox.GlobalArray[ox.f16, tuple[int, int]], z: ox.GlobalArray[ox.f32, tuple[int, int]]
) -> None:
    ox.matmul(x, y)  # E
    ox.matmul(z, z)  # E
    ox.matmul(x, x, out=y, epilogue=lambda s: s)  # E
    ox.matmul(x, x, epilogue=lambda s: s.cast(ox.i32))  # E
