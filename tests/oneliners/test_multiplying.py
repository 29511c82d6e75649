"""`ox.matmul`, with numpy as the oracle: small integers, whose sums are exact in any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import oxidecopy as ox
from oxidecopy.errors import ArgumentError, DTypeError, OxidecopyError, ShapeError
from oxidecopy.oneliners import products
from oxidecopy.oneliners.product_tiles import TILES, Sizes, Tile, chosen, fits, microseconds

NUMPY: dict[Any, Any] = {ox.bf16: ml_dtypes.bfloat16, ox.f16: np.float16, ox.tf32: np.float32, ox.e4m3: ml_dtypes.float8_e4m3fn}
Array = npt.NDArray[Any]


@pytest.fixture(scope="module")
def dev() -> ox.Device:
    return ox.Device.open("sim-fast")


def small(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float64)


def array(dev: ox.Device, x: Array, dtype: Any, turned: bool) -> Any:
    """`x`, or a view of it as it lies when its last two dimensions are turned."""
    made = dev.array(np.ascontiguousarray(np.swapaxes(x, -1, -2) if turned else x).astype(NUMPY[dtype]), dtype)
    return made.permute(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2) if turned else made


@pytest.mark.parametrize(
    ("dtype", "a", "b", "turned"),
    [
        (ox.bf16, (70, 72), (72, 136), (False, False)),
        (ox.bf16, (140, 72), (72, 72), (False, True)),
        (ox.f16, (70, 72), (72, 40), (True, False)),
        (ox.f16, (37, 45), (45, 29), (False, False)),
        (ox.tf32, (33, 40), (40, 24), (False, False)),
        (ox.e4m3, (33, 144), (144, 32), (False, True)),
        (ox.bf16, (3, 70, 72), (3, 72, 40), (False, False)),
        (ox.bf16, (2, 140, 24), (24, 40), (False, True)),
        (ox.bf16, (2, 70, 64), (2, 64, 40), (True, True)),
    ],
)
def test_as_numpy(dev: ox.Device, dtype: Any, a: tuple[int, ...], b: tuple[int, ...], turned: tuple[bool, bool]) -> None:
    x, y = small(a, 1), small(b, 2)
    said: Any = ox.matmul(array(dev, x, dtype, turned[0]), array(dev, y, dtype, turned[1]), explain=True)
    assert (said.out.numpy().astype(np.float64) == x @ y).all(), said
    assert "on tensor cores" in str(said)


@pytest.mark.parametrize(("a", "b"), [((300, 72), (72, 136)), ((2, 140, 72), (72, 136)), ((2, 140, 72), (2, 72, 136))])
@pytest.mark.parametrize(("down", "across"), [(2, 1), (1, 2), (2, 2), (1, 4)])
def test_clusters_share_operands(monkeypatch: pytest.MonkeyPatch, a: tuple[int, ...], b: tuple[int, ...], down: int, across: int) -> None:
    """Each CTA loads a slice of a for those beside it, and of b for those below it."""
    tile = Tile(n=64, groups=2, down=down, across=across, stages=2)
    monkeypatch.setattr(products, "chosen", lambda *_, **__: tile)
    dev = ox.Device.open("sim-fast")  # without plans of other tiles
    x, y = small(a, 1), small(b, 2)
    said: Any = ox.matmul(array(dev, x, ox.bf16, turned=False), array(dev, y, ox.bf16, turned=True), explain=True)
    assert (said.out.numpy().astype(np.float64) == x @ y).all(), said
    assert f"clusters of {down} x {across}" in str(said)


@pytest.mark.parametrize(
    ("epilogue", "words"),
    [
        (None, "the whole program is one kernel"),
        (lambda s: s.gelu().cast(ox.bf16), "one kernel; its epilogue is compiled"),
        (lambda s: s.sqrt().cast(ox.bf16), "a few microseconds a tile: the epilogue is no chain of steps around one function ("),
        (lambda s: s.sqrt().cast(ox.bf16), "); its epilogue is interpreted"),
    ],
    ids=["cast", "gelu", "sqrt", "what that means"],
)
def test_an_explanation_says_how_a_gpu_runs_it(dev: ox.Device, epilogue: Any, words: str) -> None:
    a, b = (array(dev, small((64, 64), i), ox.bf16, turned=False) for i in (1, 2))
    assert words in str(ox.matmul(a, b, epilogue=epilogue, explain=True))


def test_an_epilogue_reads_vectors_and_a_residual(dev: ox.Device) -> None:
    x, y, row, column, r = small((70, 24), 1), small((24, 40), 2), small((70, 1), 3), small((40,), 4), small((70, 40), 5)
    reads = tuple(dev.array(v.astype(np.float32)) for v in (row, column, r))
    out = ox.matmul(
        array(dev, x, ox.bf16, turned=False),
        array(dev, y, ox.bf16, turned=True),
        epilogue=lambda s, a, b, c: (s * a + b).relu() + c,
        reads=reads,
    )
    assert out.dtype is ox.f32
    assert (out.numpy() == np.maximum(x @ y * row + column, 0) + r).all()


def test_the_residual_may_be_the_result(dev: ox.Device) -> None:
    x, y, r = small((70, 24), 1), small((24, 40), 2), small((70, 40), 5)
    out = dev.array(r.astype(np.float32), ox.f32)
    for _ in range(2):  # the second call finds its plan
        ox.matmul(
            array(dev, x, ox.bf16, turned=False), array(dev, y, ox.bf16, turned=False), out=out, epilogue=lambda s, c: s + c, reads=(out,)
        )
    assert (out.numpy() == r + 2 * (x @ y)).all()


def test_views_that_no_map_can_be_made_of(dev: ox.Device) -> None:
    x, y = small((70, 50), 1), small((50, 40), 2)
    whole = dev.zeros((72, 43), ox.bf16)
    a = array(dev, np.pad(x, ((0, 0), (1, 0))), ox.bf16, turned=False)[:, 1:]
    said: Any = ox.matmul(a, array(dev, y, ox.bf16, turned=False), out=whole[1:71, 1:41], explain=True)
    assert len(said.temporaries) == 2
    assert (whole.numpy().astype(np.float64) == np.pad(x @ y, ((1, 1), (1, 2)))).all()


def onto_itself(dev: ox.Device) -> object:
    x = dev.zeros((8, 8), ox.bf16)
    return ox.matmul(x, x, out=x)


def squared(dev: ox.Device) -> object:
    x = dev.zeros((8, 8), ox.bf16)
    return ox.matmul(x, x)


@pytest.mark.parametrize(
    ("rule", "error", "call"),
    [
        ("OX1240", ShapeError, lambda d: ox.matmul(d.zeros((8, 64), ox.bf16), d.zeros((8, 64), ox.bf16))),
        ("OX1240", ShapeError, lambda d: ox.matmul(d.zeros((2, 8, 64), ox.bf16), d.zeros((3, 64, 8), ox.bf16))),
        ("OX1241", DTypeError, lambda d: ox.matmul(d.zeros((8, 64), ox.f32), d.zeros((64, 8), ox.f32))),
        ("OX1241", DTypeError, lambda d: ox.matmul(d.zeros((8, 64), ox.bf16), d.zeros((64, 8), ox.f16))),
        (
            "OX1201",
            DTypeError,
            lambda d: ox.matmul(d.zeros((8, 8), ox.bf16), d.zeros((8, 8), ox.bf16), out=d.zeros((8, 8), ox.f16), epilogue=lambda s: s),
        ),
        ("OX1243", ShapeError, lambda d: ox.matmul(d.zeros((8, 8), ox.bf16), d.zeros((8, 8), ox.bf16), reads=(d.zeros((8,), ox.f32),))),
        ("OX1243", ShapeError, lambda d: ox.matmul(d.zeros((8, 8), ox.bf16), d.zeros((8, 8), ox.bf16), reads=d.zeros((8,), ox.f32))),
        ("OX1200", ShapeError, lambda d: ox.matmul(d.zeros((8, 8), ox.bf16), d.zeros((8, 8), ox.bf16), out=d.zeros((8, 9), ox.bf16))),
        ("OX1202", ArgumentError, onto_itself),
        ("OX1242", ArgumentError, lambda _: squared(ox.Device.open("sim", arch=100))),
    ],
)
def test_what_is_refused(dev: ox.Device, rule: str, error: type[OxidecopyError], call: Callable[[Any], object]) -> None:
    with pytest.raises(error) as caught:
        call(dev)
    assert rule in caught.value.rules


def test_tiles_are_the_fastest_of_those_that_fit() -> None:
    for shape in ((8192, 8192), (64, 512, 512), (256, 256), (70, 4096), (4096, 40)):
        for majors in (("k", "k"), ("k", "mn"), ("mn", "k"), ("mn", "mn")):
            sizes = Sizes(shape, 1024, "bf16", majors)
            tile = chosen(sizes, 132)
            assert fits(tile, sizes)
            assert majors[1] == "k" or tile.down == 1
            assert majors[0] == "k" or tile.across == 1
            assert microseconds(tile, sizes, 132) == min(microseconds(t, sizes, 132) for t in TILES if fits(t, sizes))
    assert all(tile.shared_bytes <= 227 << 10 for tile in TILES)


@pytest.mark.parametrize(
    ("sizes", "measured"),
    [
        (Sizes((8192, 8192), 8192, "bf16"), 1420.6),
        (Sizes((4096, 4096), 4096, "bf16"), 184.6),
        (Sizes((16384, 4096), 4096, "bf16"), 722.6),
        (Sizes((1000, 3000), 5000, "bf16", odd=(True, True)), 52.3),
        (Sizes((64, 512, 512), 512, "bf16"), 39.9),
        (Sizes((64, 512, 512), 1024, "bf16"), 61.4),
    ],
)
def test_the_model_is_near_what_was_measured(sizes: Sizes, measured: float) -> None:
    """The best of all tiles on an H200, and what is chosen."""
    tile = chosen(sizes, 132)
    assert abs(microseconds(tile, sizes, 132) / measured - 1) < 0.06
    assert tile.rows * tile.n == 128 * (192 if sizes.odd[0] else 256)
    assert (tile.cluster == 2) == sizes.odd[0]


def test_epilogues_that_compute() -> None:
    """Each group has 128 columns then, whose elements it reads once for 128 rows; and no tile that only whole programs are computed in."""
    sizes = Sizes((4096, 4096), 4096, "bf16", computes=True)
    assert chosen(sizes, 132)[:3] == (128, 128, 2)
    odd = Sizes((1000, 3000), 5000, "bf16", odd=(True, True))
    assert chosen(odd, 132).n == 192
    assert chosen(odd._replace(computes=True), 132).n != 192
    assert not fits(chosen(odd, 132), odd._replace(dtype="e4m3"))


def test_the_model_counts_turns() -> None:
    """One tile more than multiprocessors is another turn."""
    none, one, two = (microseconds(Tile(down=1), Sizes((128 * n, 256), 4096, "bf16"), 132) for n in (0, 132, 133))
    assert two - one == pytest.approx(one - none)
