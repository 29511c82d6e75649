"""Every lesson, on its own data and on a user's: equal to numpy, each broken twin refused by the rule it names, types clean."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import erfc
from pathlib import Path
from types import ModuleType
from typing import Any, final
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pytest

import oxidecopy as ox
from oxidecopy.engines.sim import SimEngine, explore
from oxidecopy.errors import OxidecopyError
from oxidecopy.host.compare import difference
from oxidecopy.host.recipe import RecipeFunction

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9][0-9]_*.py"))
Array = npt.NDArray[Any]


def load(path: Path) -> ModuleType:
    name = f"examples_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def main(path: Path, *argv: str) -> int:
    run: Callable[[Sequence[str]], int] = load(path).main
    return run(argv)


def recipes(path: Path) -> list[tuple[str, RecipeFunction]]:
    pipelines = [value for value in vars(load(path)).values() if isinstance(value, ox.Pipeline)]
    return [(pipeline.__name__, recipe) for pipeline in pipelines for recipe in pipeline.recipes]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One pipeline of a lesson on an array of the user, and what numpy says that it must give."""

    lesson: str
    pipeline: str
    dtype: type[np.generic]
    shapes: tuple[tuple[int, ...], ...]
    result: Callable[[Array], Array]


PLANES = ((77, 101), (1, 1), (64, 64), (65, 257), (300, 3))


def same(x: Array) -> Array:
    return x


def ruler(x: Array) -> Array:
    x = x.copy()
    x[:8] = np.arange(x.shape[1]) % 64
    return x


def total(x: Array) -> Array:
    out: Array = x.sum(axis=0, dtype=np.int32, keepdims=True)
    return out


def shifted(x: Array) -> Array:
    out: Array = np.pad(x, ((1, 0), (4, 0)))[:-1, :-4]
    return out


def twice(x: Array) -> Array:
    return np.stack([x, x])


def every_second(x: Array) -> Array:
    return x[::2]


def framed(x: Array) -> Array:
    return np.pad(x, ((2, 2), (4, 4)), constant_values=np.nan)


def rulers(x: Array) -> Array:
    x = x.copy()
    x[np.arange(len(x)) % 32 < 4] = np.arange(x.shape[1]) % 64
    return x


def windows(x: Array, before: int) -> Array:
    """Every 32 rows with the `before` rows above them, zeros where there are none."""
    out: Array = np.zeros((-(-len(x) // 32), before + 32, x.shape[1]), x.dtype)
    for i, window in enumerate(out):
        for j, row in enumerate(window, i * 32 - before):
            if 0 <= j < len(x):
                row[:] = x[j]
    return out.reshape(-1, x.shape[1])


def scaled_by_rows(x: Array) -> Array:
    largest = np.abs(x).max(axis=1, keepdims=True)
    out: Array = (x * (1 / largest)).astype(np.float16)
    return out


def blurred(x: Array) -> Array:
    around = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    weights = np.outer((1, 2, 1), np.array((1, 2, 1), np.float32) / 16).astype(np.float32)
    out: Array = around[: len(x), : x.shape[1]] * weights[0, 0]
    for dy, dx in list(np.ndindex(3, 3))[1:]:
        out = out + around[dy : dy + len(x), dx : dx + x.shape[1]] * weights[dy, dx]
    return out


def heads_first(x: Array) -> Array:
    out: Array = x.transpose(0, 2, 1, 3)
    return out


def squared(x: Array) -> Array:
    return x * x + x


def scaled_alike(x: Array) -> Array:
    out: Array = x * np.float32(1.7)
    return out


def scaled(x: Array) -> Array:
    out: Array = (x * np.float32(1.7)).astype(np.float16)
    return out


def slabs(x: Array) -> Array:
    """The columns in slabs of 32, the last one filled with zeros: (rows, slabs, 32)."""
    out: Array = np.pad(x, ((0, 0), (0, -x.shape[1] % 32))).reshape(len(x), -1, 32)
    return out


def summed(x: Array) -> Array:
    """The sum of the slabs, one after the other."""
    out = np.zeros((len(x), 32), x.dtype)
    for k in range(slabs(x).shape[1]):
        out += slabs(x)[:, k]
    return out


def products(x: Array) -> Array:
    """For each block of 64 rows, beside each other: all rows times those of the block, summed over slabs."""
    rows = np.arange(len(x))
    blocks = []
    for first in range(0, len(x), 64):
        other = np.pad(x, ((0, 64), (0, 0)))[first + rows % 64]
        out = np.zeros((len(x), 32), x.dtype)
        for k in range(slabs(x).shape[1]):
            out += slabs(x)[:, k] * slabs(other)[:, k]
        blocks.append(out)
    return np.concatenate(blocks, axis=1)


def blended(x: Array) -> Array:
    out: Array = (x * np.float32(0.75) + (x + x) * np.float32(-0.5)).astype(np.float16)
    return out


def with_neighbours(x: Array) -> Array:
    above, below = np.zeros_like(x), np.zeros_like(x)
    above[1:], below[:-1] = x[:-1], x[1:]
    out: Array = above + x + below
    return out


def sobel(x: Array) -> Array:
    """Sobel's filter across the columns, tap by tap, a row for each pixel."""
    rows, columns = x.shape[1:3]
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    out = np.zeros_like(x)
    for row, weight in enumerate((1, 2, 1)):
        for column, sign in ((0, -1), (2, 1)):
            out += padded[:, row : row + rows, column : column + columns] * np.float32(weight * sign)
    return out.reshape(-1, x.shape[3])


def by_expert(x: Array) -> Array:
    route = np.random.default_rng(5).choice((0, 2, 3, 5, 7), len(x))
    return np.concatenate([x[route == expert] for expert in range(8)])


def causal(x: Array) -> Array:
    """Blocks of 64 rows: those of q with all of k and v up to their own."""
    q, k, v = np.pad(x, ((0, 0), (0, -x.shape[1] % 64), (0, 0)))
    out = np.empty_like(q)
    for first in range(0, len(q), 64):
        mine = slice(first, first + 64)
        total, weights = np.zeros_like(q[mine]), np.zeros_like(q[mine])
        for other in range(0, first + 1, 64):
            scores = q[mine] * k[other : other + 64]
            total, weights = total + scores * v[other : other + 64], weights + scores
        with np.errstate(invalid="ignore", divide="ignore"):
            out[mine] = total / weights
    kept: Array = out[: x.shape[1]]
    return kept


def signs_times(x: Array, rows: int, seed: int) -> Array:
    """The signs of `x` times the small numbers that lesson 30 makes."""
    w = np.random.default_rng(seed).integers(-1, 2, (rows, x.shape[1])).astype(np.float64)
    return np.asarray(np.sign(x).astype(np.float64) @ w.T)


def linear(x: Array) -> Array:
    sums = signs_times(x, 72, 2) + np.random.default_rng(3).integers(-1, 2, 72)
    return np.asarray(sums * 0.5 * np.vectorize(erfc)(-sums / np.sqrt(2))).astype(np.float16)


def with_residual(x: Array) -> Array:
    return np.asarray(
        signs_times(x, 136, 5) + np.random.default_rng(6).integers(-1, 2, (len(x), 136)) + np.random.default_rng(7).integers(-1, 2, 136)
    ).astype(np.float16)


def expert_products(x: Array) -> Array:
    rng = np.random.default_rng(31)
    w = rng.integers(-2, 3, (4, 72, x.shape[1])).astype(np.float64)
    made = []
    for expert, tokens in ((0, x[(np.arange(len(x)) % 4 == 0) | (np.arange(len(x)) % 4 == 3)]), (2, x[1::4]), (3, x[2::4])):
        made.append(np.pad(np.sign(tokens).astype(np.float64) @ w[expert].T, ((0, -len(tokens) % 64), (0, 0))))
    return np.concatenate(made).astype(np.float16)


def convolved(x: Array) -> Array:
    w = np.random.default_rng(32).integers(-1, 2, (72, 3, 3, x.shape[3])).astype(np.float64)
    rows, columns = x.shape[1:3]
    padded = np.pad(np.sign(x).astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows_ = np.stack([padded[:, r : r + rows, c : c + columns] for r in range(3) for c in range(3)], axis=3)
    sums = np.einsum("nhwtc,ftc->nhwf", windows_, w.reshape(72, 9, -1))
    out: Array = np.maximum(sums, 0).reshape(-1, 72).astype(np.float16)
    return out


CASES = (
    Case(lesson="01_load", pipeline="tma_load", dtype=np.float32, shapes=PLANES, result=same),
    Case(lesson="01_load", pipeline="everyone_arrives", dtype=np.float32, shapes=PLANES, result=same),
    Case(lesson="02_store", pipeline="ruler", dtype=np.int32, shapes=(*PLANES, (7, 131)), result=ruler),
    Case(lesson="03_reduce", pipeline="combine", dtype=np.int32, shapes=((3, 33, 70), (1, 1, 1), (9, 8, 129)), result=total),
    Case(lesson="04_multicast", pipeline="one_for_all", dtype=np.float32, shapes=PLANES, result=same),
    Case(lesson="04_multicast", pipeline="slices", dtype=np.float32, shapes=PLANES, result=same),
    Case(lesson="05_remainders", pipeline="copy", dtype=np.float32, shapes=PLANES, result=same),
    Case(lesson="05_remainders", pipeline="shift", dtype=np.float32, shapes=PLANES, result=shifted),
    Case(lesson="06_prefetch", pipeline="prefetch", dtype=np.float32, shapes=PLANES, result=same),
    Case(lesson="06_prefetch", pipeline="producer_consumers", dtype=np.float32, shapes=PLANES, result=same),
    Case(lesson="07_cluster", pipeline="twice", dtype=np.float32, shapes=PLANES, result=twice),
    Case(lesson="08_boxes", pipeline="volume", dtype=np.float32, shapes=((9, 8, 33), (1, 1, 1), (2, 3, 128)), result=same),
    Case(lesson="08_boxes", pipeline="batch", dtype=np.float16, shapes=((3, 1, 33, 64), (1, 2, 1, 5)), result=same),
    Case(lesson="08_boxes", pipeline="batch_of_volumes", dtype=np.uint8, shapes=((1, 3, 4, 5, 33), (2, 1, 1, 1, 16)), result=same),
    Case(lesson="09_strides_and_fill", pipeline="every_second", dtype=np.float32, shapes=PLANES, result=every_second),
    Case(lesson="09_strides_and_fill", pipeline="framed", dtype=np.float32, shapes=PLANES, result=framed),
    Case(lesson="10_ring", pipeline="prefetch", dtype=np.float32, shapes=PLANES, result=same),
    Case(lesson="10_ring", pipeline="rasterised", dtype=np.float32, shapes=PLANES, result=same),
    Case(lesson="11_consumer_groups", pipeline="shares", dtype=np.float32, shapes=PLANES, result=same),
    Case(lesson="11_consumer_groups", pipeline="both", dtype=np.float32, shapes=PLANES, result=same),
    Case(lesson="12_multicast_ring", pipeline="twice", dtype=np.float32, shapes=PLANES, result=same),
    Case(lesson="13_store_ring", pipeline="rulers", dtype=np.int32, shapes=(*PLANES, (2, 131)), result=rulers),
    Case(lesson="13_store_ring", pipeline="pass_on", dtype=np.int32, shapes=PLANES, result=same),
    Case(lesson="14_halo", pipeline="haloed", dtype=np.float32, shapes=PLANES, result=lambda x: windows(x, 4)),
    Case(lesson="14_halo", pipeline="windows", dtype=np.float32, shapes=PLANES, result=lambda x: windows(x, 64)),
    Case(lesson="15_counter", pipeline="copy", dtype=np.float32, shapes=PLANES, result=same),
    Case(lesson="15_counter", pipeline="scale", dtype=np.float32, shapes=PLANES, result=scaled),
    Case(lesson="16_own_kernel", pipeline="scale", dtype=np.float32, shapes=PLANES, result=scaled_alike),
    Case(lesson="17_table", pipeline="ragged", dtype=np.float32, shapes=PLANES, result=same),
    Case(lesson="17_table", pipeline="grouped", dtype=np.float32, shapes=PLANES, result=same),
    Case(lesson="18_mainloop", pipeline="mainloop", dtype=np.float32, shapes=PLANES[:4], result=products),
    Case(lesson="18_mainloop", pipeline="with_ring", dtype=np.float32, shapes=PLANES[:4], result=products),
    Case(lesson="19_ping_pong", pipeline="ping_pong", dtype=np.float32, shapes=PLANES, result=summed),
    Case(lesson="20_epilogue", pipeline="with_ring", dtype=np.float32, shapes=PLANES, result=blended),
    Case(lesson="20_epilogue", pipeline="by_hand", dtype=np.float32, shapes=PLANES, result=blended),
    Case(lesson="21_split_k", pipeline="in_memory", dtype=np.int32, shapes=PLANES, result=summed),
    Case(lesson="21_split_k", pipeline="in_cluster", dtype=np.int32, shapes=PLANES, result=summed),
    Case(lesson="22_halo_exchange", pipeline="exchange", dtype=np.float32, shapes=PLANES, result=with_neighbours),
    Case(lesson="23_convolution", pipeline="edges", dtype=np.float32, shapes=((1, 1, 1, 1), (3, 5, 7, 33), (1, 40, 3, 4)), result=sobel),
    Case(lesson="24_experts", pipeline="dispatch", dtype=np.float32, shapes=PLANES[:4], result=by_expert),
    Case(lesson="24_experts", pipeline="with_ring", dtype=np.float32, shapes=PLANES[:4], result=by_expert),
    Case(lesson="26_weights", pipeline="cast_scaled", dtype=np.float32, shapes=((77, 101), (1, 1), (64, 64)), result=scaled_by_rows),
    Case(lesson="27_blur", pipeline="blurred", dtype=np.float32, shapes=((1, 1, 4), (9, 33, 4)), result=blurred),
    Case(lesson="28_heads", pipeline="permuted", dtype=np.float16, shapes=((1, 1, 1, 8), (1, 33, 5, 72)), result=heads_first),
    Case(lesson="29_depth", pipeline="streamed", dtype=np.float32, shapes=((77, 101), (1, 1)), result=squared),
    Case(lesson="25_attention", pipeline="attention", dtype=np.float32, shapes=((3, 1, 1), (3, 70, 40), (3, 257, 32)), result=causal),
    Case(lesson="30_matmul", pipeline="linear", dtype=np.float32, shapes=((65, 257), (1, 1)), result=linear),
    Case(lesson="30_matmul", pipeline="added", dtype=np.float32, shapes=((65, 257), (1, 1)), result=with_residual),
    Case(lesson="31_expert_products", pipeline="experts", dtype=np.float32, shapes=((77, 101), (5, 3)), result=expert_products),
    Case(lesson="32_convolution_product", pipeline="convolution", dtype=np.float32, shapes=((1, 8, 9, 70), (1, 1, 1, 1)), result=convolved),
)
ON_USERS_DATA = [pytest.param(case, shape, id=f"{case.lesson}-{case.pipeline}-{shape}") for case in CASES for shape in case.shapes]
LESSONS = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
EVERY = [(path, recipe) for path in EXAMPLES for _, recipe in recipes(path)]
GOOD = [(path, recipe) for path, recipe in EVERY if not recipe.refused]
TWINS = [(path, recipe) for path, recipe in EVERY if recipe.refused]
# What the recorder or the descriptor refuses leaves no program that could be run.
PROGRAMS = [(path, recipe) for path, recipe in TWINS if recipe.refused.startswith("OX3")]


def of_each(pairs: list[tuple[Path, RecipeFunction]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("path", "recipe"), [pytest.param(*pair, id=f"{pair[0].stem}-{pair[1].name}") for pair in pairs])


def example(name: str) -> Path:
    return ROOT / "examples" / f"{name}.py"


# ---- on their own data
@LESSONS
def test_runs_and_agrees_with_numpy(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(path, "--device", "sim") == 0
    printed, complaints = capsys.readouterr()
    assert not complaints
    good = [name for name, recipe in recipes(path) if not recipe.refused]
    for name in good:
        assert f"{name}: " in printed
    assert printed.count("equal to numpy's") >= len(good)
    assert printed.count("refused, as it should be") == sum(bool(recipe.refused) for _, recipe in recipes(path)) > 0
    assert "not checked" not in printed


@of_each(GOOD)
def test_no_schedule_shows_a_hazard(path: Path, recipe: RecipeFunction) -> None:
    for seed in range(5):
        made = recipe(ox.Device("sim", SimEngine(seed=seed)))
        made.launch()
        for name, array in made.outputs.items():
            within = made.within.get(name, 0.0)
            assert difference(name, array.numpy(), made.expected[name], within) is None, f"seed {seed} of {path.stem}"


def test_as_a_script() -> None:
    done = subprocess.run([sys.executable, str(example("01_load"))], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "tma_load: out float32 (128, 256) equal to numpy's" in done.stdout


# ---- on a user's array
@pytest.mark.parametrize(("case", "shape"), ON_USERS_DATA)
def test_on_a_users_array(case: Case, shape: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(sum(shape))
    x: Array = (rng.standard_normal(shape) * 99).astype(case.dtype)
    given, made = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(given, x)
    assert main(example(case.lesson), "--input", str(given), "--output", str(made), "--pipeline", case.pipeline) == 0, capsys.readouterr()
    result, wanted = np.load(made), case.result(x)
    assert result.dtype == wanted.dtype
    assert np.array_equal(result, wanted, equal_nan=True)


def test_every_pipeline_is_tried_on_a_users_array() -> None:
    tried = {(case.lesson, case.pipeline) for case in CASES}
    assert tried == {(path.stem, name) for path in EXAMPLES for name, recipe in recipes(path) if not recipe.refused}


WRONG: list[tuple[str, Array]] = [
    ("complex", np.zeros((64, 64), np.complex64)),
    ("float64", np.zeros((64, 64), np.float64)),
    ("rank 1", np.zeros(64, np.float32)),
    ("rank 6", np.zeros((1, 1, 1, 1, 1, 4), np.float32)),
    ("rank 0", np.zeros((), np.float32)),
    ("empty", np.zeros((0, 64), np.float32)),
]


@LESSONS
@pytest.mark.parametrize("x", [pytest.param(x, id=name) for name, x in WRONG])
def test_a_wrong_array_is_refused_by_rule(path: Path, x: Array, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, made = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(given, x)
    assert main(path, "--input", str(given), "--output", str(made)) in (1, 2)
    printed, complaints = capsys.readouterr()
    assert "[OX" in complaints
    assert len(complaints.splitlines()) <= 24, "more than a screen"
    assert not printed
    assert not made.exists()


# ---- broken twins
@of_each(TWINS)
def test_the_twin_is_refused_by_its_rule(path: Path, recipe: RecipeFunction) -> None:
    with pytest.raises(OxidecopyError) as caught:
        recipe(ox.Device.open("sim")).launch()
    assert recipe.refused in caught.value.rules
    for diagnostic in caught.value.diagnostics:
        assert diagnostic.site is not None
        assert Path(diagnostic.site.file) == path


@of_each(PROGRAMS)
def test_the_simulator_sees_what_the_verifier_refuses(path: Path, recipe: RecipeFunction) -> None:
    """The second judge: it runs the program unverified, on any schedule, and finds fault with it."""
    launch = recipe(ox.Device.open("sim")).launch
    for seed in range(5):
        seen = explore(launch.program, launch._arguments.bindings, seed=seed)
        assert seen.diagnostics or seen.findings, f"seed {seed} of {path.stem}"


@LESSONS
def test_each_lesson_has_a_twin_with_its_edit_marked(path: Path) -> None:
    twins = sum(bool(recipe.refused) for _, recipe in recipes(path))
    assert twins >= 1
    assert path.read_text().count("# the edit: ") == twins


# ---- how they are written
def test_the_lessons_are_numbered() -> None:
    numbers = [int(path.stem[:2]) for path in EXAMPLES]
    assert numbers == sorted(set(numbers))
    assert numbers[:25] == list(range(1, 26))


@LESSONS
def test_a_lesson_says_what_it_shows_in_one_line(path: Path) -> None:
    first, blank, *_ = (load(path).__doc__ or "").split("\n")
    assert first.endswith(".")
    assert len(first) <= 110
    assert not blank


def test_types_are_clean() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", *map(str, EXAMPLES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# ---- files of other kinds
def test_a_tensor_of_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float16)
    header = json.dumps({"layer.weight": {"dtype": "F16", "shape": [40, 50], "data_offsets": [0, x.nbytes]}}).encode()
    path, made = tmp_path / "model.safetensors", tmp_path / "y.npy"
    path.write_bytes(len(header).to_bytes(8, "little") + header + x.tobytes())
    assert main(example("26_weights"), "--input", f"{path}:layer.weight", "--output", str(made), "--device", "sim") == 0
    assert np.array_equal(np.load(made), scaled_by_rows(x.astype(np.float32)))
    assert main(example("26_weights"), "--input", f"{path}:layer.bias") == 1
    assert "OX1221" in capsys.readouterr().err


def test_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = pytest.importorskip("PIL.Image")
    x = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    given, made = tmp_path / "in.png", tmp_path / "out.png"
    image.fromarray(x).save(given)
    assert main(example("27_blur"), "--input", str(given), "--output", str(made), "--device", "sim") == 0
    wanted = blurred(np.pad(x, ((0, 0), (0, 0), (0, 1)), constant_values=255).astype(np.float32) / np.float32(255))
    assert np.array_equal(np.asarray(image.open(made)), (wanted * 255 + 0.5).clip(0, 255).astype(np.uint8))
    given.write_bytes(b"no picture")
    assert main(example("27_blur"), "--input", str(given)) == 1
    assert "cannot be read as a picture" in capsys.readouterr().err


def test_depths_are_swept_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "depth.svg"
    assert main(example("29_depth"), "--sweep", str(place), "--device", "sim") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == [str(n) for n in range(1, 9)]
    assert ElementTree.parse(place).getroot().tag.endswith("svg")
    one, four = (float(lines[i].split()[2]) for i in (0, 3))
    assert four < one / 2  # what a prefetch hides, by the simulator's model of time
