from __future__ import annotations

from typing import assert_type

import oxidecopy as ox


def factories(images: ox.GlobalArray[ox.f16, ox.D4], volumes: ox.GlobalArray[ox.f16, ox.D5], lines: ox.GlobalArray[ox.f16, ox.D3]) -> None:
    flat = ox.TmaDescriptor.im2col(lines, lower=(-1,), upper=(-1,), channels=64, pixels=32)
    made = ox.TmaDescriptor.im2col(images, lower=(-1, -1), upper=(-1, -1), channels=64, pixels=32, swizzle=ox.Swizzle128B)
    deep = ox.TmaDescriptor.im2col(volumes, lower=(0, 0, 0), upper=(0, 0, 0), channels=8, pixels=8, element_strides=(1, 2, 2, 2, 1))
    wide = ox.TmaDescriptor.im2col_wide(images, lower=-1, upper=-1, channels=64, mode="w128", swizzle=ox.Swizzle128BAtom32B)
    sliced = ox.TmaDescriptor.interleaved(images, box=(1, 1, 8), swizzle=ox.Swizzle32B)
    of_flat: ox.Im2colDescriptor[ox.f16, ox.D3, ox.SwizzleNone] = flat
    of_images: ox.Im2colDescriptor[ox.f16, ox.D4, ox.Swizzle128B] = made
    of_volumes: ox.Im2colDescriptor[ox.f16, ox.D5, ox.SwizzleNone] = deep
    of_wide: ox.Im2colWideDescriptor[ox.f16, ox.D4, ox.Swizzle128BAtom32B] = wide
    of_slices: ox.TmaDescriptor[ox.f16, ox.D3, ox.Swizzle32B] = sliced
    assert_type(made.shape, ox.D4)
    assert_type(made.verdict, ox.Verdict)
    print(of_flat, of_images, of_volumes, of_wide, of_slices)


def verdicts(desc: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    verdict = ox.validate(desc.parameters, arch="sm_100")
    assert_type(verdict.encodes, bool)
    assert_type(verdict.mended(), ox.Verdict | None)
    verdict.check(warnings=True)
    print([d.fix for d in verdict.warnings], ox.validate(ox.MapParameters.of(desc.tensor_map)))
    print(ox.Device.open("sim", arch=100), ox.Device.open(arch="10.0"))
