"""Weights: a matrix of a model, scaled row by row and rounded to f16 on its way from array to array.

What a conversion or a quantisation of weights does: each row has a scale of its own, and the result has half the bytes. Nothing is stored
in between. The scales of a box's rows are a tile of one row, loaded with it, which `per_row` spreads over the columns. One twin is broken
on purpose: it stores f32 through a descriptor of f16. In one line: `ox.transform(lambda v, s: (v * s).cast(ox.f16), w, scales)`.

    python examples/26_weights.py --input model.safetensors:layers.0.weight --output y.npy    # a tensor of your model, of any floats
    python examples/26_weights.py --input x.npy --output y.npy                                # or any 2-D float32 array
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

import oxidecopy as ox
from oxidecopy.errors import OxidecopyError

BOX = (32, 64)
Weights = ox.TmaDescriptor[ox.f32, ox.D2]
Scales = ox.TmaDescriptor[ox.f32, ox.D1]
Rounded = ox.TmaDescriptor[ox.f16, ox.D2]
Array = npt.NDArray[np.float32]


# ---- scale and round
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def cast_scaled(cta: ox.Cta, w: Weights, scales: Scales, dst: Rounded) -> None:
    ring = cta.ring(stages=3, tiles=(w, scales))
    outs = cta.store_ring(dst, stages=2)
    with cta.producer() as leader:
        for y, x in cta.tiles(w):
            with ring.produce(leader) as (slot, scale):
                slot.load(w, (y, x))
                scale.load(scales, (y,))  # those of the box's rows
    with cta.consumers() as group:
        for at in cta.tiles(w):
            with ring.consume(group) as (tile, scale), outs.put(group, at) as out:
                group.map(lambda v, s: (v * s).cast(ox.f16), tile, ox.per_row(scale), out=out)


@cast_scaled.recipe
def cast_scaled_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, w, scales, out, factors = arguments(dev, x)
    launch = cast_scaled[4].bind(w, scales, ox.TmaDescriptor.tiled(out, box=BOX))
    return ox.Recipe(launch=launch, outputs={"out": out}, expected={"out": (x * factors[:, None]).astype(np.float16)})


def arguments(dev: ox.Device, x: Array | None) -> tuple[Array, Weights, Scales, ox.GlobalArray[ox.f16, ox.D2], Array]:
    """The matrix, its scales (which bring the largest element of each row to 1), and where the result goes."""
    if x is None:
        x = np.random.default_rng(26).standard_normal((150, 200), dtype=np.float32)
    array: ox.GlobalArray[ox.f32, ox.D2] = dev.array(x, ox.f32, pad=True)
    w = ox.TmaDescriptor.tiled(array, box=BOX)  # a rank that is no matrix's is refused here
    largest = np.abs(x).max(axis=1)
    factors: Array = (1 / np.where(largest > 0, largest, 1)).astype(np.float32)
    given: ox.GlobalArray[ox.f32, ox.D1] = dev.array(factors, ox.f32)
    return x, w, ox.TmaDescriptor.tiled(given, box=BOX[:1]), dev.empty((len(x), x.shape[1]), ox.f16, pad=True), factors


# ---- broken on purpose: the cast is left out
# A type checker says it too: the function gives f32, and the tile holds f16.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_cast(cta: ox.Cta, w: Weights, scales: Scales, dst: Rounded) -> None:
    ring = cta.ring(stages=3, tiles=(w, scales))
    outs = cta.store_ring(dst, stages=2)
    with cta.producer() as leader:
        for y, x in cta.tiles(w):
            with ring.produce(leader) as (slot, scale):
                slot.load(w, (y, x))
                scale.load(scales, (y,))
    with cta.consumers() as group:
        for at in cta.tiles(w):
            with ring.consume(group) as (tile, scale), outs.put(group, at) as out:
                group.map(lambda v, s: v * s, tile, ox.per_row(scale), out=out)  # type: ignore[arg-type, return-value]  # the edit: no cast


@broken_cast.recipe(refused="OX1126")
def broken_cast_recipe(dev: ox.Device) -> ox.Recipe:
    x, w, scales, out, _ = arguments(dev, None)
    return ox.Recipe(launch=broken_cast[4].bind(w, scales, ox.TmaDescriptor.tiled(out, box=BOX)), outputs={"out": out}, expected={"out": x})


# ---- a tensor of a model
def tensor_of(given: str) -> Array | None:
    """`FILE.safetensors:NAME`, or `FILE.safetensors` that has one tensor, as f32; None for anything else."""
    path, _, name = given.partition(".safetensors")
    if not name and not given.endswith(".safetensors"):
        return None
    return ox.read_safetensors(f"{path}.safetensors", name.removeprefix(":") or None).astype(np.float32)


def main(argv: Sequence[str] | None = None) -> int:
    args = list(sys.argv[1:] if argv is None else argv)
    with TemporaryDirectory() as folder:
        for i, word in enumerate(args[1:], 1):
            if args[i - 1] == "--input" and ".safetensors" in word:
                try:
                    tensor = tensor_of(word)
                except OxidecopyError as error:
                    sys.stderr.write(f"{error}\n")
                    return 1
                args[i] = str(Path(folder) / "tensor.npy")
                np.save(args[i], np.zeros(0, np.float32) if tensor is None else tensor)
        return ox.run_recipes(__doc__, cast_scaled, broken_cast, argv=args)


if __name__ == "__main__":
    raise SystemExit(main())
