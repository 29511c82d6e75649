"""Own kernels: machine code that you compiled, launched with the same descriptors, arrays and scalars.

Some kernels are written in CUDA C++, and stay that way. Their cubin can be launched from here, with types: a declaration says what a kernel
takes. A checker holds the calls against it, and it is held against the parameter table in the cubin when the file is loaded. On a GPU this
lesson scales an array twice, by a pipeline and by an own kernel. The simulator runs no machine code: there it is the pipeline alone. Three
twins are broken on purpose: declarations that do not fit what is in the cubin.

    python examples/16_own_kernel.py --input x.npy --output y.npy        # any 2-D float32 array
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

BOX = (64, 64)
TILE_BYTES = 64 * 64 * 4
ALPHA = 1.7
Source = ox.TmaDescriptor[ox.f32, ox.D2]
Result = ox.GlobalArray[ox.f32, ox.D2]
Array = npt.NDArray[np.float32]

# ---- what is in the file
# `kernels/scale.cu` is the source, and says how the cubin beside it was made. Reading one needs no GPU: `print(CUBIN)` shows for which
# architecture it was compiled, and what each kernel takes: registers, shared memory, parameters.
CUBIN = ox.Cubin(Path(__file__).parent / "kernels" / "scale.sm_90a.cubin")


# ---- the declaration
# The kernel's name and parameters, in its order; the body is `...`. In the source they are
#
#     scale(const __grid_constant__ TensorMap src, float* out, int rows, int cols, float alpha)
#
# A descriptor is a map by value. An array is a pointer to its first element and nothing else, so its extents are parameters of their own.
# An `Idx` is an `int` or a `long long`, whichever the kernel has, and a `Scalar` a value of its element type. The cubin knows sizes and
# alignments, and the bound on threads: what does not fit them is refused here, before anything is launched.
@CUBIN.kernel("scale", threads=128, shared_bytes=TILE_BYTES + 8)
def own_scale(src: Source, out: Result, rows: ox.Idx, cols: ox.Idx, alpha: ox.Scalar[ox.f32]) -> None: ...


# ---- the same as a pipeline
# This one is verified before it runs, on both engines. Of the own kernel nobody has proven anything.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def scale(cta: ox.Cta, src: Source, dst: Source, alpha: ox.Scalar[ox.f32]) -> None:
    ring = cta.ring(stages=2, tiles=(src,))
    outs = cta.store_ring(dst, stages=2)
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with ring.consume(group) as (tile,), outs.put(group, at) as made:
                group.map(lambda v: v * alpha, tile, out=made)


@scale.recipe
def scale_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return recipe(dev, x, own_scale)


def recipe(dev: ox.Device, x: Array | None, own: ox.CubinKernel[Source, Result, ox.Idx, ox.Idx, ox.Scalar[ox.f32]]) -> ox.Recipe:
    """The launch of the pipeline; where the own kernel can be launched, with its result beside it."""
    if x is None:
        x = np.random.default_rng(16).standard_normal((150, 200), dtype=np.float32)
    src = ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=BOX)
    out = dev.empty(x.shape, ox.f32, pad=True)
    outputs = {"out": out}
    if CUBIN.runs_on(dev):
        # Without `pad`: strides are as unknown to the kernel as extents, and this one counts on rows without gaps.
        outputs["own"] = dev.empty(x.shape, ox.f32)
        rows, cols = x.shape
        own[-(-cols // 64), -(-rows // 64)](src, outputs["own"], rows, cols, ALPHA)
    launch = scale[4].bind(src, ox.TmaDescriptor.tiled(out, box=BOX), ALPHA)
    with np.errstate(over="ignore"):  # what f32 cannot hold becomes an infinity, in all of them
        wanted = x * np.float32(ALPHA)
    return ox.Recipe(launch=launch, outputs=outputs, expected=dict.fromkeys(outputs, wanted))


# ---- broken on purpose: another type
# A `double` takes eight bytes; the kernel has four in its place. Launched like this it would scale by half of a number.
@scale.recipe(refused="OX5407")
def broken_type(dev: ox.Device) -> ox.Recipe:
    @CUBIN.kernel("scale", threads=128, shared_bytes=TILE_BYTES + 8)
    def own(src: Source, out: Result, rows: ox.Idx, cols: ox.Idx, alpha: ox.Scalar[ox.f64]) -> None: ...  # the edit: not `ox.f32`

    return recipe(dev, None, own_scale)


# ---- broken on purpose: a parameter is missing
# Whoever forgets the extents launches a kernel that finds them in what happens to lie behind the other parameters.
@scale.recipe(refused="OX5406")
def broken_count(dev: ox.Device) -> ox.Recipe:
    @CUBIN.kernel("scale", threads=128, shared_bytes=TILE_BYTES + 8)
    def own(src: Source, out: Result, alpha: ox.Scalar[ox.f32]) -> None: ...  # the edit: no `rows` and `cols`

    return recipe(dev, None, own_scale)


# ---- broken on purpose: too many threads
# The source says `__launch_bounds__(128)`, and the compiler gave registers to that many. The driver would only say "invalid argument".
@scale.recipe(refused="OX5408")
def broken_threads(dev: ox.Device) -> ox.Recipe:
    @CUBIN.kernel("scale", threads=256, shared_bytes=TILE_BYTES + 8)  # the edit: not 128
    def own(src: Source, out: Result, rows: ox.Idx, cols: ox.Idx, alpha: ox.Scalar[ox.f32]) -> None: ...

    return recipe(dev, None, own)


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, scale, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
