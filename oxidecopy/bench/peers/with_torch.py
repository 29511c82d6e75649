"""torch in eager mode: what its users write; each call makes its own result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from oxidecopy.bench.lines import row_numbers

if TYPE_CHECKING:
    from oxidecopy.bench.peers import Call, Given

Way: TypeAlias = Callable[[Any], object]
_WAYS: Final[dict[str, tuple[str, Way]]] = {
    "permute": ("x.permute(0, 2, 1, 3).contiguous()", lambda x: x.permute(0, 2, 1, 3).contiguous()),
    "transpose": ("x.T.contiguous()", lambda x: x.T.contiguous()),
    "cast": ("x.bfloat16()", lambda x: x.bfloat16()),
    "sums": ("x.sum(1), in f32", lambda x: x.sum(1, dtype=import_module("torch").float32)),
    "column sums": ("x.sum(0), in f32", lambda x: x.sum(0, dtype=import_module("torch").float32)),
    "copied": ("x.clone()", lambda x: x.clone()),
    "sum of rows": ("x.sum(0, keepdim=True)", lambda x: x.sum(0, keepdim=True)),
}


def start(work: str, given: Given) -> Mapping[str, Call]:
    """As `oxidecopy.bench.peers` says."""
    torch: Any = import_module("torch")
    if work.startswith("product"):
        return _product(torch, work, given)
    stream = torch.cuda.ExternalStream(given.stream.handle)
    x = torch.from_dlpack(given.inputs[0])

    def on_stream(call: Way) -> object:
        with torch.cuda.stream(stream):
            return call(x)

    ways = _ways(torch, work, x)
    for call in ways.values():
        made = on_stream(call)
        with torch.cuda.stream(stream):
            torch.from_dlpack(given.output).copy_(made)
    return {words: partial(on_stream, call) for words, call in ways.items()}


def _ways(torch: Any, work: str, x: Any) -> Mapping[str, Way]:
    if work.startswith("from column"):
        start = int(work.rpartition(" ")[2])
        return {f"x[:, {start}:].contiguous()": lambda x: x[:, start:].contiguous()}
    if work.startswith("rows of"):
        numbers = torch.from_numpy(row_numbers(x.shape[0])).to(x.device)
        long = numbers.long()
        return {"torch.index_select": lambda x: torch.index_select(x, 0, numbers), "x[numbers]": lambda x: x[long]}
    return dict([_WAYS[work]])


def _product(torch: Any, work: str, given: Given) -> Mapping[str, Call]:
    """cuBLAS, on the arrays where they lie; what follows a product is eager torch."""
    stream = torch.cuda.ExternalStream(given.stream.handle)
    a, b, bias = map(torch.from_dlpack, given.inputs)
    out = torch.from_dlpack(given.output)
    turned = b.transpose(-1, -2)
    one = torch.ones((), device=a.device)
    wide = torch.float32
    scaled: Any = getattr(torch, "_scaled_mm", None)
    ways: dict[str, tuple[str, Callable[[], object]]] = {
        "product": ("torch.mm", lambda: torch.mm(a, turned, out=out)),
        "products": ("torch.bmm", lambda: torch.bmm(a, turned, out=out)),
        "product of fp8": (
            "torch._scaled_mm",
            lambda: scaled(a, turned, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, out=out),
        ),
        "product, bias, gelu": (
            "torch.mm, then gelu(x + bias)",
            lambda: out.copy_(torch.nn.functional.gelu(torch.mm(a, turned).to(wide) + bias)),
        ),
    }
    words, call = ways[work]

    def on_stream() -> object:
        with torch.cuda.stream(stream):
            return call()

    on_stream()
    return {words: on_stream}
