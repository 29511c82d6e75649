"""The cases of `oracle_cases` as launches, on any device, and the data that they start from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

import oxidecopy as ox
from oxidecopy.conformance.case import Made
from oxidecopy.conformance.oracle_cases import OracleCase, landed
from oxidecopy.isa.dtypes import DTYPES

if TYPE_CHECKING:
    import numpy.typing as npt

    from oxidecopy.host.device import Device

_SWIZZLES: Final = {mode.info.name: mode for mode in (ox.SwizzleNone, ox.Swizzle32B, ox.Swizzle64B, ox.Swizzle128B)}
Map = Any  # a descriptor of either kind
Pipe = ox.Pipeline[...]
Bytes = "npt.NDArray[np.uint8]"


def data(n: int, seed: int, dtype: str, op: str) -> npt.NDArray[np.uint8]:
    """`n` bytes by formula: i -> (197 i + 31 (i >> 8) + 17 + 101 seed) mod 256.

    The floats of a reduction have one bit of their exponent cleared, the highest, so that all are below 2 and none is a NaN.
    """
    i = np.arange(n, dtype=np.int64)
    made = ((197 * i + 31 * (i >> 8) + 17 + 101 * seed) & 255).astype(np.uint8)
    if op not in ("load", "store") and DTYPES[dtype].is_float:
        made[DTYPES[dtype].nbytes - 1 :: DTYPES[dtype].nbytes] &= 0xBF
    return made


def make(case: OracleCase, dev: Device) -> Made:
    """The launch; its one output is what the case's result is read from."""
    dtype: Any = getattr(ox, case.dtype)
    size, edge = dtype.info.nbytes, landed(case)
    memory = dev.array(data(case.nbytes, 0, case.dtype, case.op), ox.u8)
    array = ox.GlobalArray(
        dtype=dtype, shape=case.shape, strides_bytes=(*case.strides_bytes, size), buffer=memory.buffer, device=memory.device
    )
    desc, dense = _descriptor(case, array), (edge[0] * case.blocks, *edge[1:])
    if case.op == "load":
        out = dev.zeros(dense, dtype)
        return Made(launch=_loader(case)[case.blocks].bind(desc, out), outputs={"out": out})
    count = int(np.prod(dense))
    values = data(count * size, 1, case.dtype, case.op).view(ox.typed.global_array.storage_dtype(dtype.info)).reshape(dense)
    maps: Any = ox.TmaDescriptor.tiled
    source = maps(dev.array(values, dtype), box=edge, swizzle=_SWIZZLES[case.swizzle])
    return Made(launch=_storer(case)[case.blocks].bind(source, desc), outputs={"out": array})


def result(case: OracleCase, made: Made) -> bytes:
    """What the case gave: all bytes of the output's memory."""
    a = made.outputs["out"]
    engine: Any = a.device.engine
    return bytes(engine.read(a.buffer, 0, case.nbytes if case.op != "load" else a.buffer.nbytes))


def _descriptor(case: OracleCase, array: Any) -> Any:
    maps: Any = ox.TmaDescriptor
    options = {"swizzle": _SWIZZLES[case.swizzle], "element_strides": case.steps, "oob_fill": case.fill}
    if case.kind == "im2col":
        pixels, channels = case.box
        return maps.im2col(array, lower=case.lower, upper=case.upper, channels=channels, pixels=pixels, **options)
    return (maps.tiled if case.kind == "tiled" else maps.interleaved)(array, box=case.box, **options)


def _place(cta: ox.Cta, case: OracleCase) -> Any:
    return tuple(start + cta.block_idx.x * step if step else start for start, step in zip(case.at, case.move, strict=True))


def _loader(case: OracleCase) -> Pipe:
    """Each block's box to a place of its own, by plain stores: they undo the swizzle by arithmetic of their own."""
    edge = landed(case)
    more: dict[str, Any] = {"offsets": case.offsets} if case.kind == "im2col" else {}
    kind: Any = ox.Im2colDescriptor if case.kind == "im2col" else ox.TmaDescriptor

    def load(cta: ox.Cta, src: Map, out: ox.GlobalArray[Any, Any]) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, _place(cta, case), token, **more)
        full.wait(token)
        cta.store(out, tile, (cta.block_idx.x * edge[0], *(0 for _ in edge[1:])))
        full.inval()

    load.__annotations__["src"] = kind[Any, Any, Any, Any]
    return ox.pipeline(threads=32)(load)


def _storer(case: OracleCase) -> Pipe:
    """Each block's tile from a dense array to its box."""
    edge = landed(case)
    kind: Any = ox.Im2colDescriptor if case.kind == "im2col" else ox.TmaDescriptor

    def store(cta: ox.Cta, src: ox.TmaDescriptor[Any, Any, Any, Any], dst: Map) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, (cta.block_idx.x * edge[0], *(0 for _ in edge[1:])), token)
        full.wait(token)
        with cta.elect() as leader:
            if case.op == "store":
                dst.s2g(leader, tile, _place(cta, case))
            else:
                dst.reduce(getattr(ox.reduce, case.op), leader, tile, _place(cta, case))
            leader.commit_group()
            leader.wait_group(0)

    store.__annotations__["dst"] = kind[Any, Any, Any, Any]
    return ox.pipeline(threads=32)(store)
