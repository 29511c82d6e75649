"""Operators of torch on a GPU: as they are, compiled, captured, on other streams."""

from __future__ import annotations

from typing import Any

import pytest

from oxidecopy.frameworks.torch import On, torch_op
from oxidecopy.host.device import Device
from tests.frameworks.test_torch import transposed

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def op(torch: Any) -> Any:
    def real(on: On, x: Any, out: Any) -> None:
        transposed(on, x, out)

    real.__annotations__ |= {"x": torch.Tensor, "out": torch.Tensor}
    return torch_op("oxidecopy_gpu_tests::transposed", mutates=("out",))(real)


def test_it_runs_where_its_tensors_are(dev: Device, torch: Any, op: Any) -> None:
    x = torch.randn(512, 256, device="cuda", requires_grad=True)
    out = torch.zeros(256, 512, device="cuda")
    op(x, out)
    assert torch.equal(out, x.T)


def test_on_the_current_stream(dev: Device, torch: Any, op: Any) -> None:
    x, out = torch.zeros(4096, 4096, device="cuda"), torch.zeros(4096, 4096, device="cuda")
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x.normal_()
        op(x, out)
        same = torch.equal(out, x.T)
    assert same


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own compiler
@pytest.mark.parametrize("how", [{"backend": "aot_eager"}, {}, {"mode": "reduce-overhead"}], ids=str)
def test_compiled(dev: Device, torch: Any, op: Any, how: dict[str, str]) -> None:
    """`reduce-overhead` captures graphs, and refuses them where somebody else has a tensor of theirs."""

    def around(x: Any) -> Any:
        out = torch.empty(64, 32, device="cuda")
        op(x * 2, out)
        return out + 1

    compiled = torch.compile(around, fullgraph=True, **how)
    for _ in range(4):
        x = torch.randn(32, 64, device="cuda")
        assert torch.equal(compiled(x).clone(), (2 * x).T + 1)


def test_captured(dev: Device, torch: Any, op: Any) -> None:
    x, out = torch.randn(64, 32, device="cuda"), torch.zeros(32, 64, device="cuda")
    op(x, out)  # recorded and proven before the capture
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        op(x, out)
    for _ in range(3):
        x.normal_()
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(out, x.T)


def test_several_of_them(dev: Device, torch: Any) -> None:
    def stacked(on: On, xs: Any, out: Any) -> None:
        for i, x in enumerate(xs):
            transposed(on, x, out[i])

    stacked.__annotations__ |= {"xs": list[torch.Tensor], "out": torch.Tensor}
    op: Any = torch_op("oxidecopy_gpu_tests::stacked", mutates=("out",))(stacked)
    xs = [torch.randn(16, 32, device="cuda") for _ in range(4)]
    out = torch.zeros(4, 32, 16, device="cuda")
    op(xs, out)
    assert torch.equal(out, torch.stack([x.T for x in xs]))
