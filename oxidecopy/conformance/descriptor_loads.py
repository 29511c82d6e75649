"""Loads through maps of the matrix: what the validator calls usable must do on the device what it does on the simulator.

And the reverse: extents above 2^31 fault at every copy, and an innermost element stride is ignored, as the validator says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from random import Random
from typing import TYPE_CHECKING, Any, Final, cast, final

import oxidecopy as ox
from oxidecopy.conformance.case import Made
from oxidecopy.conformance.descriptor_cases import SEED, DescriptorCase
from oxidecopy.errors import DeviceFaultError
from oxidecopy.host.opening import SIMULATORS
from oxidecopy.isa.limits import SHARED_BYTES_MAX
from oxidecopy.maps.enumerators import DTYPE_OF
from oxidecopy.maps.parameters import MapParameters
from oxidecopy.maps.validate import Verdict, validate
from oxidecopy.program.tensor_map import IM2COL as IM2COL_MODE
from oxidecopy.program.tensor_map import SLICE_BYTES, TILE, TensorMap

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.engine import CudaEngine
    from oxidecopy.host.device import Device

LOADS: Final = 200
IM2COL: Final = 80
INTERLEAVED: Final = 40
IGNORED: Final = 8
FAULTS: Final = 6
FAULT: Final = 715  # CUDA_ERROR_ILLEGAL_INSTRUCTION
_REACH_MAX: Final = 1 << 20  # bytes of the array that a load may touch
_SWIZZLES: Final = (ox.SwizzleNone, ox.Swizzle32B, ox.Swizzle64B, ox.Swizzle128B)
_BARRIERS: Final = 1024  # bytes of shared memory beside the tile


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCase:
    """A load through a map; `faults` says that the device must refuse it with `FAULT`."""

    name: str
    parameters: MapParameters
    faults: bool = False


def load_cases(cases: Sequence[DescriptorCase], seed: int = SEED) -> list[LoadCase]:
    """A sample of the maps that can be loaded through: usable ones, then those that the validator says are not."""
    counts = {"usable": LOADS, "usable im2col": IM2COL, "usable interleaved": INTERLEAVED, "OX2018": IGNORED, "OX2004": FAULTS}
    kinds: dict[str, list[DescriptorCase]] = {why: [] for why in counts}
    for case in cases:
        verdict = validate(case.parameters)
        if verdict.encodes and case.parameters.kind != "im2col_wide" and _loadable(case.parameters):
            kinds.setdefault(_why(verdict), []).append(case)
    random, made = Random(seed), list[LoadCase]()
    for why, count in counts.items():
        chosen = random.sample(kinds[why], min(count, len(kinds[why])))
        made += [LoadCase(name=_name(why, i, case), parameters=case.parameters, faults=why == "OX2004") for i, case in enumerate(chosen)]
    return made


def _why(verdict: Verdict) -> str:
    """`usable`, and what kind of map that is neither plain nor tiled; or the rules that say why not."""
    p = verdict.parameters
    kind = " interleaved" if p.interleave else " im2col" if p.kind == "im2col" else ""
    return (" ".join(sorted({d.rule for d in verdict.errors})) or "usable") + kind


def _name(why: str, number: int, case: DescriptorCase) -> str:
    p = case.parameters
    box = f"box {p.box_dim}" if p.kind == "tiled" else f"{p.pixels} pixels x {p.channels} channels, corners {p.lower} {p.upper}"
    return f"{why} {number}: {DTYPE_OF[p.dtype].name} {p.global_dim} {box} steps {p.element_strides} swizzle {p.swizzle}"


def _loadable(p: MapParameters) -> bool:
    """Its tile fits into a block, and a load touches no more memory than there is."""
    tensor = map_of(p)
    footprint = tensor.layout.footprint_bytes
    if not is_plain(p):
        return _whole_is_there(tensor) and footprint <= SHARED_BYTES_MAX[90] - _BARRIERS
    counts = zip(tensor.tile_shape, tensor.element_strides, tensor.global_dim, (*tensor.global_strides, 1), strict=True)
    rows = sum(min((n - 1) * step, extent - 1) * stride for n, step, extent, stride in list(counts)[:-1])
    reach = rows + tensor.layout.row_bytes
    return reach <= _REACH_MAX and footprint <= SHARED_BYTES_MAX[90] - _BARRIERS


def is_plain(p: MapParameters) -> bool:
    """A tiled map without interleave."""
    return p.kind == "tiled" and not p.interleave


def _whole_is_there(tensor: TensorMap) -> bool:
    """All of the array fits into the memory; rows of slice pixels are whole spans, as a tile lays them out."""
    strides = zip(tensor.global_dim[:-1], tensor.global_strides, strict=True)
    span, row = tensor.swizzle_info.span_bytes, tensor.layout.row_bytes
    whole = tensor.interleave == "none" or not span or row % span == 0
    return whole and sum((n - 1) * stride for n, stride in strides) + tensor.row_bytes <= _REACH_MAX


def map_of(p: MapParameters) -> TensorMap:
    """The map of parameters that encode as a tiled or an im2col one."""
    return TensorMap(
        dtype=DTYPE_OF[p.dtype].name,
        mode=TILE if p.kind == "tiled" else IM2COL_MODE,
        lower=p.lower or (),
        upper=p.upper or (),
        interleave=tuple(SLICE_BYTES)[p.interleave],
        global_dim=p.global_dim or (),
        global_strides=p.global_strides or (),
        box_dim=(p.box_dim or ()) if p.kind == "tiled" else (p.pixels, p.channels),
        element_strides=p.element_strides or (),
        swizzle=_SWIZZLES[p.swizzle].info.name,
        l2_promotion=(0, 64, 128, 256)[p.l2_promotion],
        oob_fill=("zero", "nan")[p.oob_fill],
    )


# ---- on a device
@ox.pipeline(threads=32)
def load(cta: ox.Cta, src: ox.TmaDescriptor[Any, Any, Any, Any], out: ox.TmaDescriptor[Any, Any, Any, Any], first: int) -> None:
    """One box that begins at `first` in the outermost dimension, to `out`, which is as large."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    inner: tuple[Any, ...] = tuple(0 for _ in src.shape[1:])
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (first, *inner), token)
        full.wait_phase(0)
        out.s2g(leader, tile, (0, *inner))
        leader.commit_group()
        leader.wait_group(0)


def _other_load(tensor: TensorMap) -> ox.Pipeline[...]:
    """One copy through an im2col or interleaved map, from the first base or a pixel before the first; out by plain stores."""
    before, offsets = (-1,) if tensor.mode == TILE else (), tuple(1 for _ in tensor.lower)
    kind: Any = ox.TmaDescriptor if tensor.mode == TILE else ox.Im2colDescriptor
    sliced = tensor.interleave != "none"
    middle: tuple[int, ...] = (0,) * (tensor.rank - 2) if tensor.mode == TILE else (0, *tensor.lower) if sliced else tensor.lower
    at = (0, *middle, *(before or (() if sliced else (0,))))
    more: dict[str, Any] = {"offsets": offsets} if offsets else {}

    def other(cta: ox.Cta, src: Any, out: ox.GlobalArray[Any, Any]) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, at, token, **more)
        full.wait(token)
        cta.store(out, tile, tuple(0 for _ in tile.shape))
        full.inval()

    other.__annotations__["src"] = kind[Any, Any, Any, Any]
    return ox.pipeline(threads=32)(other)


def make(p: MapParameters, device: Device) -> Made:
    """The launch: the array lies in random bytes at the alignment that the parameters say."""
    import numpy as np

    in_memory = device.name in SIMULATORS or not is_plain(p)
    tensor = map_of(p) if in_memory else _exchanged(map_of(p), p.global_address, device)
    dtype: Any = getattr(ox, tensor.dtype)
    data = np.frombuffer(np.random.default_rng(p.dtype).bytes(_REACH_MAX + 256), np.uint8)
    memory = device.array(data, ox.u8)
    strides, offset = (*tensor.global_strides, tensor.dtype_info.nbytes), p.global_address % 128
    array: Any = ox.GlobalArray(
        dtype=dtype, shape=tensor.global_dim, strides_bytes=strides, buffer=memory.buffer, device=memory.device, offset_bytes=offset
    )
    # Not through the factory, which refuses what is to be shown here.
    handle: Any = ox.TmaDescriptor if p.kind == "tiled" else ox.Im2colDescriptor
    source: Any = handle._on_host(array, tensor)  # noqa: SLF001
    shape = tensor.tile_shape
    out: Any = device.zeros(shape, dtype)
    if not is_plain(p):
        return Made(launch=_other_load(tensor)[1].bind(source, out), outputs={"out": out})
    factory: Any = ox.TmaDescriptor.tiled
    target = factory(out, box=shape, swizzle=_SWIZZLES[p.swizzle])
    first = -1 if tensor.rank > 1 and prod(shape) > shape[-1] else 0
    return Made(launch=load[1].bind(source, target, first), outputs={"out": out})


def _exchanged(real: TensorMap, address: int, device: Device) -> TensorMap:
    """A map that no engine has a reason to refuse: it ends where the box does. On `device`, a GPU, the bytes of `real` go in its place."""
    from oxidecopy.engines.cuda.tensor_map import driver_arguments

    reach = [(n - 1) * step + 1 for n, step in zip(real.tile_shape[:-1], real.element_strides[:-1], strict=True)]
    twin = replace(real, global_dim=tuple(min(extent, n) for extent, n in zip(real.global_dim, (*reach, real.box_dim[-1]), strict=True)))
    engine = cast("CudaEngine", device.engine)
    encoder = engine._room.encoder  # noqa: SLF001  # no public way leads around the checks
    with engine.context:
        encoder._templates[twin] = encoder._encoded(driver_arguments(real, address))  # noqa: SLF001
    return twin


def fault_code(parameters: MapParameters, device: Device) -> int:
    """The CUresult of a load that faults; the context of `device` is lost by it. 0 when it does not fault."""
    try:
        made = make(parameters, device)
        made.launch()
        made.outputs["out"].numpy()
    except DeviceFaultError as fault:
        return fault.code
    return 0
