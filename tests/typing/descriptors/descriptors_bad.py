from __future__ import annotations

import oxidecopy as ox

Images = ox.GlobalArray[ox.f16, ox.D4]


def factories(images: Images, volumes: ox.GlobalArray[ox.f16, ox.D5], rows: ox.GlobalArray[ox.f16, ox.D2]) -> None:
    ox.TmaDescriptor.im2col(rows, lower=(), upper=(), channels=64, pixels=32)  # E
    ox.TmaDescriptor.im2col(images, lower=(-1,), upper=(-1, -1), channels=64, pixels=32)  # E
    ox.TmaDescriptor.im2col(images, lower=-1, upper=-1, channels=64, pixels=32)  # E
    ox.TmaDescriptor.im2col(images, lower=(-1, -1), upper=(-1, -1), channels=64.0, pixels=32)  # E
    ox.TmaDescriptor.im2col(images, lower=(-1, -1), upper=(-1, -1), channels=64)  # E
    ox.TmaDescriptor.im2col(images, lower=(-1, -1), upper=(-1, -1), channels=64, pixels=32, element_strides=(1, 1))  # E
    ox.TmaDescriptor.im2col(images, lower=(-1, -1), upper=(-1, -1), channels=64, pixels=32, oob_fill="one")  # E
    ox.TmaDescriptor.im2col(images, lower=(-1, -1), upper=(-1, -1), channels=64, pixels=32, swizzle="128B")  # E
    ox.TmaDescriptor.im2col_wide(images, lower=(-1,), upper=-1, channels=64, pixels=32, swizzle=ox.Swizzle128B)  # E
    ox.TmaDescriptor.im2col_wide(images, lower=-1, upper=-1, channels=64, pixels=32)  # E
    ox.TmaDescriptor.im2col_wide(images, lower=-1, upper=-1, channels=64, mode="w256", swizzle=ox.Swizzle128B)  # E
    ox.TmaDescriptor.im2col_wide(rows, lower=-1, upper=-1, channels=64, swizzle=ox.Swizzle128B)  # E
    ox.TmaDescriptor.interleaved(rows, box=(1, 1))  # E
    ox.TmaDescriptor.interleaved(images, box=(1, 1, 1, 8))  # E
    ox.TmaDescriptor.interleaved(volumes, box=(1, 1, 8))  # E


def kinds(images: Images) -> None:
    tiled: ox.TmaDescriptor[ox.f16, ox.D4] = ox.TmaDescriptor.im2col(images, lower=(0, 0), upper=(0, 0), channels=8, pixels=8)  # E
    made = ox.TmaDescriptor.im2col(images, lower=(0, 0), upper=(0, 0), channels=8, pixels=8)
    wide: ox.Im2colWideDescriptor[ox.f16, ox.D4] = made  # E
    other: ox.Im2colDescriptor[ox.f32, ox.D4] = made  # E
    rank: ox.Im2colDescriptor[ox.f16, ox.D3] = made  # E
    ox.DescriptorTable([made])  # E
    ox.Im2colDescriptor(images)  # E
    print(tiled, wide, other, rank)


def verdicts(parameters: ox.MapParameters) -> None:
    ox.validate(parameters, 90)  # E
    ox.validate(parameters, arch=9.0)  # E
    ox.validate({"dtype": 7})  # E
    ox.MapParameters(dtype="f32", global_address=0, global_dim=(8,), global_strides=(), element_strides=(1,))  # E
    ox.MapParameters(dtype=7, global_dim=(8,), global_strides=(), element_strides=(1,))  # E
    ox.MapParameters(kind="gather", dtype=7, global_address=0, global_dim=(8,), global_strides=(), element_strides=(1,))  # E
    parameters.swizzle = 3  # E
    ox.Device.open("sim", arch=10.0)  # E
