"""Launches of own kernels: arguments as the cubin lays them out, and what is refused before an engine sees it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.engines.base import BoundArray, BoundMap, RawLaunch, SupportsCubins
from oxidecopy.errors import ArgumentError, CubinError, DeviceError, OxidecopyError
from tests.helpers.cubin_files import LESSON, SM90, SM90_CUDA13, NotingEngine, noting_device

Map = ox.TmaDescriptor[ox.f32, ox.D2]
Out = ox.GlobalArray[ox.f32, ox.D2]
CUBIN = ox.Cubin(SM90)


@CUBIN.kernel("scale", threads=128, shared_bytes=1000)
def scale(src: Map, out: Out, alpha: ox.Scalar[ox.f32], n: ox.Idx, c: ox.Scalar[ox.u8], h: ox.Scalar[ox.u16]) -> None: ...


@CUBIN.kernel("clustered", threads=(32, 2))
def clustered(out: Out, src: Map) -> None: ...


@ox.Cubin(LESSON).kernel("scale", threads=128, shared_bytes=16_392)
def lesson(src: Map, out: Out, rows: ox.Idx, cols: ox.Idx, alpha: ox.Scalar[ox.f32]) -> None: ...


def arrays(dev: ox.Device) -> tuple[Map, Out]:
    return ox.TmaDescriptor.tiled(dev.zeros((64, 64), ox.f32), box=(64, 64)), dev.empty((8, 16), ox.f32)


def launched(engine: NotingEngine) -> RawLaunch:
    ((raw, stream),) = engine.launched
    assert stream is None
    return raw


# ---- what the engine gets
def test_parameters_lie_where_the_cubin_has_them() -> None:
    dev, engine = noting_device()
    src, out = arrays(dev)
    scale[4, 2](src, out, 2.5, -3, 200, 60_000)
    raw = launched(engine)
    assert [(p.name, p.offset, p.nbytes) for p in raw.parameters] == [
        ("src", 48, 128), ("out", 176, 8), ("alpha", 184, 4), ("n", 192, 8), ("c", 200, 1), ("h", 202, 2),
    ]  # fmt: skip
    bound, pointer, *values = (p.value for p in raw.parameters)
    assert isinstance(bound, BoundMap)
    assert bound.map == src.tensor_map
    assert isinstance(pointer, BoundArray)
    assert pointer.buffer is out.buffer
    assert values == [struct.pack("<f", 2.5), struct.pack("<q", -3), b"\xc8", struct.pack("<H", 60_000)]


def test_the_rest_of_a_launch() -> None:
    dev, engine = noting_device()
    scale[4, 2](*arrays(dev), 1.0, 1, 1, 1)
    raw = launched(engine)
    assert (raw.image, raw.kernel, raw.parameter_bytes) == (SM90.read_bytes(), "scale", 204)
    assert (raw.grid, raw.threads, raw.cluster, raw.shared_bytes) == ((4, 2, 1), (128, 1, 1), None, 1000)


def test_an_index_of_four_bytes() -> None:
    dev, engine = noting_device()
    src, out = arrays(dev)
    for n in (-(1 << 31), (1 << 31) - 1):
        lesson[1](src, out, n, 7, 1.0)
        rows, cols = (p.value for p in engine.launched[-1][0].parameters[2:4])
        assert (rows, cols) == (struct.pack("<i", n), struct.pack("<i", 7))


@pytest.mark.parametrize(
    ("dtype", "value", "wanted"),
    [
        ("f32", 0.1, np.float32(0.1).tobytes()),
        ("f32", 1e300, np.float32(np.inf).tobytes()),
        ("f32", float("nan"), np.float32(np.nan).tobytes()),
        ("f32", 7, np.float32(7).tobytes()),
        ("tf32", 0.5, np.float32(0.5).tobytes()),
        ("i32", -1, b"\xff" * 4),
        ("u32", (1 << 32) - 1, b"\xff" * 4),
    ],
)
def test_scalars_of_four_bytes(dtype: str, value: float, wanted: bytes) -> None:
    dev, engine = noting_device()
    namespace: dict[str, Any] = {"ox": ox, "Map": Map, "Out": Out}
    exec(f"def k(src: Map, out: Out, r: ox.Idx, c: ox.Idx, a: ox.Scalar[ox.{dtype}]) -> None: ...", namespace)  # one per type
    k: Any = ox.Cubin(LESSON).kernel("scale", threads=32)(namespace["k"])
    k[1](*arrays(dev), 1, 1, value)
    assert launched(engine).parameters[-1].value == wanted


@pytest.mark.parametrize(("dtype", "value"), [("u16", 0xABCD), ("f16", -1.5), ("bf16", 3.0)])
def test_scalars_of_two_bytes(dtype: str, value: float) -> None:
    dev, engine = noting_device()
    namespace: dict[str, Any] = {"ox": ox, "Map": Map, "Out": Out}
    parameters = f"src: Map, out: Out, a: ox.Scalar[ox.f32], n: ox.Idx, c: ox.Scalar[ox.e4m3], h: ox.Scalar[ox.{dtype}]"
    exec(f"def k({parameters}) -> None: ...", namespace)
    k: Any = CUBIN.kernel("scale", threads=32)(namespace["k"])
    k[1](*arrays(dev), 1.0, 1, 2.0, value)
    stored: Any = {"u16": np.uint16, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[dtype]
    assert [p.value for p in launched(engine).parameters[-2:]] == [ml_dtypes.float8_e4m3fn(2.0).tobytes(), stored(value).tobytes()]


def test_defaults_and_names() -> None:
    @CUBIN.kernel("by_pointer", threads=32)
    def by_pointer(src: Out, out: Out) -> None: ...

    dev, engine = noting_device()
    _, out = arrays(dev)
    by_pointer[1](out=out, src=out)
    assert [p.name for p in launched(engine).parameters] == ["src", "out"]


# ---- prepared, on streams
def test_a_prepared_launch_is_one_object_launched_many_times() -> None:
    dev, engine = noting_device()
    ready = scale[2].prepare(*arrays(dev), 1.0, 1, 1, 1)
    assert engine.launched == []
    ready()
    ready()
    (first, _), (second, _) = engine.launched
    assert first is second


def test_streams() -> None:
    class Mine:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, 7

    dev, engine = noting_device()
    mine = Mine()
    on = scale[2]
    on.on(mine)(*arrays(dev), 1.0, 1, 1, 1)
    on.on(12)(*arrays(dev), 1.0, 1, 1, 1)
    on(*arrays(dev), 1.0, 1, 1, 1)
    assert [stream for _, stream in engine.launched] == [mine, 12, None]


def test_launch_attributes() -> None:
    dev, engine = noting_device()
    args = (*arrays(dev), 1.0, 1, 1, 1)
    scale[2].attributes(cooperative=True).on(12)(*args)
    scale[2].on(12).attributes(programmatic=True)(*args)
    scale[2](*args)
    assert [(raw.cooperative, raw.programmatic, stream) for raw, stream in engine.launched] == [
        (True, False, 12),
        (False, True, 12),
        (False, False, None),
    ]
    with pytest.raises(ox.errors.ArgumentError) as caught:
        scale[2].attributes(cooperative="no")  # type: ignore[arg-type]
    assert caught.value.rules == ("OX5016",)


def test_a_prepared_launch_holds_the_memory_of_its_arrays() -> None:
    dev, engine = noting_device()
    ready = scale[2].prepare(*arrays(dev), 1.0, 1, 1, 1)
    ready()
    held = [p.value.buffer for p in launched(engine).parameters if not isinstance(p.value, bytes | tuple)]
    assert held == engine.memory.buffers


# ---- refused
def refused(run: Callable[[], object], error: type[OxidecopyError], *rules: str) -> OxidecopyError:
    with pytest.raises(error) as caught:
        run()
    assert type(caught.value) is error
    assert caught.value.rules == rules
    for diagnostic in caught.value.diagnostics:
        assert diagnostic.site is not None
        assert diagnostic.site.file == __file__
        assert diagnostic.fix
    return caught.value


def test_arguments_that_do_not_fit_the_declaration() -> None:
    dev, engine = noting_device()
    src, out = arrays(dev)
    call: Any = scale[1]
    half: Any = dev.empty((8, 16), ox.f16)
    error = refused(lambda: call(out, src, "1", 1.5, 256, -1), ArgumentError, "OX1053", "OX1053", "OX1035", "OX1053", "OX1035", "OX1035")
    assert [d.what.split("'")[1] for d in error.diagnostics] == ["src", "out", "alpha", "n", "c", "h"]
    refused(lambda: call(src, half, 1.0, 1, 1, 1), ArgumentError, "OX1053")
    refused(lambda: call(src, out), ArgumentError, "OX1032")
    assert engine.launched == []


def test_no_grid() -> None:
    anything: Any = scale
    refused(anything, ArgumentError, "OX1033")
    for grid in (0, (1, 2, 3, 4), "4", (1, 70_000)):
        refused(lambda grid=grid: anything[grid], ArgumentError, "OX1034")  # type: ignore[misc]  # bound here


def test_no_stream() -> None:
    on: Any = scale[1].on
    refused(lambda: on("default"), ArgumentError, "OX1051")


def test_a_grid_is_of_whole_clusters() -> None:
    clustered[4, 3]
    refused(lambda: clustered[3], ArgumentError, "OX5411")

    @CUBIN.kernel("bounded", threads=32, cluster=(2, 2))
    def bounded(out: Out) -> None: ...

    bounded[4, 2]
    refused(lambda: bounded[3, 3], ArgumentError, "OX5411", "OX5411")
    dev, engine = noting_device()
    bounded[2, 2](arrays(dev)[1])
    assert launched(engine).cluster == (2, 2, 1)


def test_a_grid_that_would_count_clusters() -> None:
    declare: Any = ox.Cubin(SM90_CUDA13).kernel("fixed", threads=(64, 2))

    def fixed(out: Out) -> None: ...

    refused(lambda: declare(fixed), CubinError, "OX5408")


def test_an_index_that_does_not_fit() -> None:
    dev, engine = noting_device()
    src, out = arrays(dev)
    error = refused(lambda: lesson[1](src, out, 1 << 31, -(1 << 31) - 1, 1.0), ArgumentError, "OX5412", "OX5412")
    assert "4 bytes, signed: -2147483648 to 2147483647" in error.diagnostics[0].required
    scale[1](src, out, 1.0, 1 << 31, 1, 1)  # eight bytes
    assert len(engine.launched) == 1


def test_the_simulator_runs_no_machine_code() -> None:
    dev = ox.Device.open("sim")
    assert not isinstance(dev.engine, SupportsCubins)
    src, out = arrays(dev)
    error = refused(lambda: lesson[1](src, out, 64, 64, 1.0), DeviceError, "OX5409")
    assert "'sim'" in error.diagnostics[0].what
    assert "a GPU of sm_90a" in error.diagnostics[0].required


def test_another_gpu() -> None:
    dev, engine = noting_device(100)
    src, out = arrays(dev)
    error = refused(lambda: lesson[1](src, out, 64, 64, 1.0), DeviceError, "OX5410")
    assert error.diagnostics[0].got == "'cuda:0' of compute capability 10.0"
    assert error.diagnostics[0].required == "sm_90a: compute capability 9.0"
    assert error.diagnostics[0].fix == "compile it with -arch=sm_100"
    assert engine.launched == []
