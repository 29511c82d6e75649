"""Pipelines as operators of torch: on a stand-in for it everywhere, on torch itself where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import UsageError
from oxidecopy.frameworks import torch as ours
from oxidecopy.frameworks.torch import On, torch_op
from tests.helpers import fake_torch

Tensor = fake_torch.Tensor


@ox.pipeline(threads=32)
def copy(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    at = (cta.block_idx.y * 16, cta.block_idx.x * 16)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, at, token)
    full.wait(token)
    cta.store(out, tile, at)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "_torch", lambda: fake_torch)


def transposed(on: On, x: Tensor, out: Tensor) -> None:
    src, dst = on.borrow(x, ox.f32, rank=2), on.borrow(out, ox.f32, rank=2)
    on.launch(copy[x.shape[1] // 16, x.shape[0] // 16], ox.TmaDescriptor.tiled(src, box=(16, 16)), dst.T)


def numbers() -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.arange(32 * 64, dtype=np.float32).reshape(32, 64)


@pytest.mark.usefixtures("fake")
def test_it_runs_on_the_simulator_without_a_copy() -> None:
    made: Any = torch_op("mine::transposed", mutates=("out",))(transposed)
    out = Tensor(np.zeros((64, 32), np.float32))
    made(Tensor(numbers(), wants_gradient=True), out)
    assert np.array_equal(out.data, numbers().T)
    made(x=Tensor(numbers() + 1), out=out)
    assert np.array_equal(out.data, numbers().T + 1)
    assert made.fake is not None
    assert made.fake(None, out=None) is None


@pytest.mark.usefixtures("fake")
def test_a_gpu_gets_torchs_current_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, object]] = []
    streams = {0: SimpleNamespace(cuda_stream=0x70), 1: SimpleNamespace(cuda_stream=0)}
    monkeypatch.setattr(fake_torch, "cuda", SimpleNamespace(current_stream=lambda device: streams[device.index]), raising=False)
    monkeypatch.setattr(ours, "_opened", lambda name: seen.append(("opened", name)))

    class Launched:
        def on(self, stream: object, /) -> Any:
            return lambda *args: seen.append(("launched", (stream, args)))

        def __call__(self, *args: Any) -> None:
            raise AssertionError

    def nothing(on: On, x: Tensor) -> None:
        on.launch(Launched(), 7)

    made = torch_op("mine::nothing", mutates=())(nothing)
    for index in streams:
        made(Tensor(numbers(), SimpleNamespace(type="cuda", index=index)))
    assert seen == [("opened", "cuda:0"), ("launched", (0x70, (7,))), ("opened", "cuda:1"), ("launched", (1, (7,)))]


def two(on: On, x: Tensor, y: list[Tensor]) -> None:
    raise AssertionError


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize("kinds", [(), ("cpu", "meta"), ("meta", "meta")])
def test_tensors_of_one_memory(kinds: tuple[str, ...]) -> None:
    made: Any = torch_op("mine::two", mutates=())(two)
    tensors = [Tensor(numbers(), SimpleNamespace(type=kind, index=None)) for kind in kinds]
    with pytest.raises(UsageError) as caught:
        made(tensors[0] if tensors else 3, tensors[1:])
    assert caught.value.rules == ("OX5052",)


def no_on(x: Tensor) -> None: ...
def unknown(on: On, x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def strange(on: On, x: bytes) -> None: ...
def gives(on: On, x: Tensor) -> Tensor:
    return x


def takes_nothing() -> None: ...


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize("function", [no_on, unknown, strange, gives, takes_nothing, None, SimpleNamespace()])
def test_functions_that_are_no_operators(function: Any) -> None:
    with pytest.raises(UsageError) as caught:
        torch_op("mine::wrong", mutates=())(function)
    assert caught.value.rules == ("OX5051",)
    assert getattr(function, "__name__", "None" if function is None else "SimpleNamespace") in str(caught.value)


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    ours._torch.cache_clear()
    with pytest.raises(UsageError) as caught:
        torch_op("mine::none", mutates=())(transposed)
    assert caught.value.rules == ("OX5050",)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_torch_itself() -> None:
    import torch  # type: ignore[import-not-found,unused-ignore]
    from torch import library  # type: ignore[import-not-found,unused-ignore]

    ours._torch.cache_clear()

    def real(on: On, x: Any, out: Any) -> None:
        transposed(on, x, out)

    real.__annotations__ |= {"x": torch.Tensor, "out": torch.Tensor}
    made: Any = torch_op("oxidecopy_tests::transposed", mutates=("out",))(real)
    x, out = torch.from_numpy(numbers()), torch.zeros(64, 32)
    library.opcheck(made, (x, out))

    def around(x: Any) -> Any:
        out = torch.zeros(64, 32)
        made(x * 2, out)
        return out + 1

    compiled = torch.compile(around, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), (2 * x).T + 1)
