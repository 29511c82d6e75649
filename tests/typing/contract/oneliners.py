from __future__ import annotations

from typing import assert_type

import oxidecopy as ox

F32x2 = ox.GlobalArray[ox.f32, ox.D2]
F16x2 = ox.GlobalArray[ox.f16, ox.D2]


def oneliners_ok(a: F32x2, h: F16x2, n: ox.GlobalArray[ox.i32, ox.D1]) -> None:
    assert_type(ox.copy(None, a), ox.GlobalArray[ox.f32, ox.D2])
    assert_type(ox.copy(ox.bf16, a), ox.GlobalArray[ox.bf16, ox.D2])
    assert_type(ox.copy(h, a), ox.GlobalArray[ox.f16, ox.D2])
    assert_type(ox.transform(lambda v: v * 2, a), ox.GlobalArray[ox.f32, ox.D2])
    ox.transform(lambda v: v.cast(ox.f16), a, out=h)
    ox.transform(lambda v, s: v * s, a, ox.value(2.0, ox.f32), out=a)
    assert_type(ox.reduce_into(a, a, ox.reduce.add), ox.GlobalArray[ox.f32, ox.D2])
    ox.reduce_into(n, n, ox.reduce.min)
    assert_type(ox.gather_rows(a, n), ox.GlobalArray[ox.f32, ox.D2])
    print(ox.copy(None, a, explain=True).text)


def oneliners_bad(a: F32x2, h: F16x2, n: ox.GlobalArray[ox.i32, ox.D1], f: ox.GlobalArray[ox.f32, ox.D1]) -> None:
    ox.transform(lambda v: v * 2, a, out=h)  # E
    ox.transform(lambda v, w: v * w, a, h)  # E
    ox.transform(lambda v, s: v * s, a, ox.value(2.0, ox.f16))  # E
    ox.transform(lambda v, s: v * s, a, 2.0)  # E
    ox.reduce_into(a, a, ox.reduce.max)  # E
    ox.reduce_into(a, h, ox.reduce.add)  # E
    ox.reduce_into(h, h, ox.reduce.bit_or)  # E
    ox.gather_rows(a, f)  # E
    ox.gather_rows(a, n, out=h)  # E
    ox.copy(a, 3)  # E
