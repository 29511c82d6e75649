"""How deep a prefetch should be: one pipeline with one to eight stages, timed, and drawn.

With one stage the producer waits for the consumers, and they for it: nothing overlaps. With two a load hides behind a computation; more
are of use as long as the memory's latency is longer than what is computed meanwhile, and then only take room. `depth` is a plain parameter:
part of the recording, so each value is a program of its own, with a proof of its own. On a GPU the times are the device's; on the simulator
they are those of its model of time (docs/timelines.md). One twin is broken on purpose: it keeps all its stages.

    python examples/29_depth.py --sweep depth.svg                  # a line for each depth, and a picture
    python examples/29_depth.py --input x.npy --output y.npy       # any 2-D float32 array
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

import oxidecopy as ox
from oxidecopy.trace import trace

BOX = (32, 64)
DEPTHS = range(1, 9)
CTAS = 2
Tiles = ox.TmaDescriptor[ox.f32, ox.D2]
Array = npt.NDArray[np.float32]


# ---- a ring of any depth
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def streamed(cta: ox.Cta, src: Tiles, dst: Tiles, depth: int) -> None:
    ring = cta.ring(stages=depth, tiles=(src,))
    outs = cta.store_ring(dst, stages=2)
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with ring.consume(group) as (tile,), outs.put(group, at) as out:
                group.map(lambda v: v * v + v, tile, out=out)


@streamed.recipe
def streamed_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, dst, out = arguments(dev, x)
    return ox.Recipe(launch=streamed[CTAS].bind(src, dst, 4), outputs={"out": out}, expected={"out": x * x + x})


def arguments(dev: ox.Device, x: Array | None) -> tuple[Array, Tiles, Tiles, ox.GlobalArray[ox.f32, ox.D2]]:
    if x is None:
        x = np.random.default_rng(29).standard_normal((250, 300), dtype=np.float32)
    array: ox.GlobalArray[ox.f32, ox.D2] = dev.array(x, ox.f32, pad=True)
    src = ox.TmaDescriptor.tiled(array, box=BOX)
    out = dev.empty((len(x), x.shape[1]), ox.f32, pad=True)
    return x, src, ox.TmaDescriptor.tiled(out, box=BOX), out


# ---- broken on purpose: stages that are never given back in time
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_depth(cta: ox.Cta, src: Tiles, dst: Tiles, depth: int) -> None:
    ring = cta.ring(stages=depth, tiles=(src,))
    outs = cta.store_ring(dst, stages=2)
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with ring.consume(group, keep=depth) as (tile,), outs.put(group, at) as out:  # the edit: all of them kept
                group.map(lambda v: v * v + v, tile, out=out)


@broken_depth.recipe(refused="OX1108")
def broken_depth_recipe(dev: ox.Device) -> ox.Recipe:
    x, src, dst, out = arguments(dev, None)
    return ox.Recipe(launch=broken_depth[CTAS].bind(src, dst, 4), outputs={"out": out}, expected={"out": x * x + x})


# ---- the sweep
def microseconds(dev: ox.Device, depth: int) -> float:
    """Of one launch: by events on a GPU, by the model's clock on the simulator."""
    simulated = dev.name.startswith("sim")
    shape = (128, 512) if simulated else (1 << 14, 1 << 12)
    _, src, dst, _ = arguments(dev, np.zeros(shape, np.float32))
    launch = streamed[CTAS if simulated else 264]
    if simulated:
        return trace(launch.bind(src, dst, depth)).timeline.end / 1e3
    stream = ox.Stream(dev)
    ready = launch.on(stream).prepare(src, dst, depth)
    marks = [stream.record()]
    for _ in range(12):
        ready()
        marks.append(stream.record())
    stream.synchronize()
    return median(1e3 * after.milliseconds_since(before) for before, after in pairwise(marks[2:]))


def sweep(device: str | None, place: Path) -> int:
    dev = ox.Device.open(device)
    times = [microseconds(dev, depth) for depth in DEPTHS]
    for depth, time in zip(DEPTHS, times, strict=True):
        print(f"{depth} stage{'s' if depth > 1 else ' '} {time:10.1f} us  {'#' * round(40 * time / max(times))}")
    place.write_text(picture(times, dev.name), encoding="utf-8")
    print(f"drawn in {place}")
    return 0


def picture(times: Sequence[float], name: str) -> str:
    """A line over the depths, as SVG."""
    points = [(60 + 60 * i, 240 - 200 * time / max(times)) for i, time in enumerate(times)]
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 540 290" font-family="sans-serif" font-size="12">']
    parts.append('<rect width="540" height="290" fill="white"/><path d="M40 240H520M40 240V30" stroke="black" fill="none"/>')
    parts.append(f'<polyline fill="none" stroke="#1f6fb2" stroke-width="2" points="{" ".join(f"{x:.0f},{y:.1f}" for x, y in points)}"/>')
    for (x, y), depth, time in zip(points, DEPTHS, times, strict=True):
        parts.append(
            f'<circle cx="{x}" cy="{y:.1f}" r="3" fill="#1f6fb2"/><text x="{x}" y="{y - 8:.1f}" text-anchor="middle">{time:.1f}</text>'
        )
        parts.append(f'<text x="{x}" y="256" text-anchor="middle">{depth}</text>')
    parts.append(f'<text x="280" y="278" text-anchor="middle">stages of the ring; microseconds of a launch on {name}</text></svg>')
    return "\n".join(parts) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    args = list(sys.argv[1:] if argv is None else argv)
    if "--sweep" in args[:-1]:
        device = args[args.index("--device") + 1] if "--device" in args[:-1] else None
        return sweep(device, Path(args[args.index("--sweep") + 1]))
    return ox.run_recipes(__doc__, streamed, broken_depth, argv=args)


if __name__ == "__main__":
    raise SystemExit(main())
