"""Emitted sources: what they look like, that their launches are fully described, and that they compile."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import oxidecopy as ox
from oxidecopy.conformance import lessons, rings
from oxidecopy.conformance.run import cases
from oxidecopy.engines.cuda import nvrtc
from oxidecopy.engines.cuda.emit import Emitted, emitted
from oxidecopy.errors import DeviceCodeError
from oxidecopy.fuzz.pipelines import pipeline
from oxidecopy.program.verified import VerifiedProgram
from oxidecopy.verify import verify
from tests.helpers.programs import Builder, lt, mod
from tests.test_examples import EXAMPLES, recipes

EVERY = int(os.environ.get("EMIT_EVERY", "199"))  # 1 compiles each of the conformance programs
PIPELINES = 6
LIBRARIES = {major: path for major in nvrtc.FOLDERS if (path := nvrtc.find_library(major)) is not None}
needs_nvrtc = pytest.mark.skipif(not LIBRARIES, reason="NVRTC is not installed (extra `kernels`)")


def of_builder(b: Builder) -> Emitted:
    return emitted(verify(b.program(), b.launch()))


def lesson(stem: str, name: str) -> Emitted:
    path = next(p for p in EXAMPLES if p.stem.startswith(stem))
    launch = next(r for n, r in recipes(path) if n == name and not r.refused).fn(ox.Device.open("sim")).launch
    return emitted(launch.verify())


def kernel_of(made: Emitted) -> str:
    """The statements without their comments."""
    text = made.source[made.source.index('extern "C"') : made.source.index("#ifdef OXIDECOPY_HOST")]
    return re.sub(r" *//.*", "", text)


# ---- what it looks like
def test_the_first_lesson() -> None:
    made = lesson("01", "tma_load")
    assert made.kernel_name == "tma_load"
    assert (made.threads, made.cluster, made.shared_bytes) == (128, (1, 1, 1), 16392)
    assert [(p.kind, p.name) for p in made.parameters] == [
        ("map", "src"),
        ("array", "out"),
        ("extent", "out_dim0"),
        ("extent", "out_dim1"),
        ("stride", "out_stride0"),
    ]
    kernel = kernel_of(made)
    assert "__launch_bounds__(128) tma_load(" in kernel
    assert "const __grid_constant__ TensorMap src," in kernel
    order = [
        "if (thread == 0) {",
        "ptx::mbarrier_init(smem + bar0, 1);",
        "__syncthreads();",
        "ptx::mbarrier_arrive_expect_tx(smem + bar0, 16384);",
        "ptx::cp_async_bulk_tensor_2d_g2s(smem + src_tile, &src, block_x * 64, block_y * 64, smem + bar0);",
        "ptx::mbarrier_wait_parity(smem + bar0, 0);",
        "coop::store_src_tile_to_out(src_tile, out, out_dim0, out_dim1, out_stride0, block_y * 64, block_x * 64, (int)thread, 128);",
        "ptx::mbarrier_inval(smem + bar0);",
    ]
    places = [kernel.index(line) for line in order]
    assert places == sorted(places)
    assert "// 01_load.py:" in made.source


def test_a_ring_is_what_one_writes_by_hand() -> None:
    kernel = kernel_of(lesson("10", "prefetch"))
    assert "if ((i0 >> 2) >= 1) ptx::mbarrier_wait_parity(smem + ring0_empty + i0_mod_4 * 8, ((i0 >> 2) - 1) & 1);" in kernel
    assert "ptx::mbarrier_wait_parity(smem + ring0_full + i1_mod_4 * 8, (i1 >> 2) & 1);" in kernel
    assert "floor_" not in kernel
    assert "i64" not in kernel.partition(") {")[2]


def test_a_counter_deals_the_tiles() -> None:
    made = lesson("15", "copy")
    kernel = kernel_of(made)
    assert made.parameters[-1].kind == "counter"
    assert kernel.count("atomicAdd(tiles_given_counter, 1u)") == 2
    assert made.shared_bytes == 16448 + 4 * 4


@pytest.mark.parametrize("tiles", [1, 2, 3])
def test_the_stage_that_brings_no_tile_waits_for_its_turn_too(tiles: int) -> None:
    """With at most as many tiles as stages, no tile waits for a free one: the word that there are no more still does."""
    dev = ox.Device.open("sim-fast")
    src, out = (dev.zeros((tiles * rings.BOX[0], rings.BOX[1]), ox.f32) for _ in range(2))
    made = emitted(rings.counted(3)[1].bind(ox.TmaDescriptor.tiled(src, box=rings.BOX, swizzle=ox.Swizzle128B), out).verify())
    assert ("if (i0 / 3 >= 1) ptx::mbarrier_wait_parity(smem + ring0_empty" in kernel_of(made)) == (tiles == 3)


def test_a_share_is_fixed_where_a_counter_does_not_fit() -> None:
    made = lesson("15", "scale")
    assert any(p.kind == "counter" for p in made.parameters) or "grid_x" in kernel_of(made)


def test_tokens_are_waited_for_by_parity() -> None:
    b = Builder()
    b.bar(stages=3)
    b.init()
    with b.elect(), b.loop(9) as i:
        token = b.arrive(0, mod(i, 3))
        b.wait(token, i=mod(i, 3))
    assert "ptx::mbarrier_wait_parity(smem + full + i1_mod_3 * 8, i1 / 3 & 1);" in kernel_of(of_builder(b))


def test_tokens_without_a_phase_are_carried() -> None:
    b = Builder()
    n = b.index("n", 2)
    b.bar(stages=2)
    b.init()
    with b.elect(), b.loop(2), b.loop(n) as i:
        token = b.arrive(0, mod(i, 2))
        b.wait(token, i=mod(i, 2))
    assert of_builder(b).kernel_name
    n = b.index("m", 3)
    with b.elect(), b.loop(2), b.loop(n) as i:
        token = b.arrive(0, mod(i, 2))
        b.wait(token, i=mod(i, 2))
    made = of_builder(b)
    assert re.search(r"token2 = ptx::mbarrier_arrive_state\(.*\);\n +token2_of = \(u64\)\(.*\);\n", kernel_of(made))
    assert re.search(r"ptx::mbarrier_wait_state\(.*, token2\);", kernel_of(made))
    assert made.shared_bytes == b.program().shared_bytes


def test_tokens_that_others_wait_for_lie_in_shared_memory() -> None:
    b = Builder()
    n = b.index("n", 3)
    b.bar()
    b.init()
    with b.loop(n) as i, b.when(lt(i, 2)):
        with b.elect():
            token = b.arrive()
        b.wait(token)
        b.sync()
    made = of_builder(b)
    assert "put_token(smem + 8, 3, (u64)(" in made.source
    assert "wait_token(smem + full, smem + 8, 3, (u64)(" in made.source
    assert made.shared_bytes == 8 + 8 + 3 * 16


def test_a_branch_that_is_never_taken_ends_the_launch() -> None:
    b = Builder()
    n = b.index("n", 3)
    b.bar()
    b.init()
    with b.elect(), b.when(lt(n, 2)):
        b.wait(b.arrive())
    assert "__trap();" in kernel_of(of_builder(b))


def test_names_that_cpp_cannot_have() -> None:
    b = Builder()
    b.bar("class")
    b.init()
    made = emitted(verify(replace(b.program(), name="int"), b.launch()))
    assert made.kernel_name == "int_2"
    assert "smem + class_2" in made.source


# ---- arguments
def test_arguments_are_packed() -> None:
    path = next(p for p in EXAMPLES if p.stem.startswith("15"))
    launch = next(r for n, r in recipes(path) if n == "scale").fn(ox.Device.open("sim")).launch
    made = emitted(launch.verify())
    maps = {name: bytes([i]) * 128 for i, (name, _) in enumerate(launch.launch.maps)}
    addresses = {name: 4096 for name, _ in launch.launch.arrays}
    counters = {p.of: 512 for p in made.parameters if p.kind == "counter"}
    packed = [p.pack(launch.launch, maps=maps, addresses=addresses, scalars={"alpha": 1.5}, counters=counters) for p in made.parameters]
    assert [len(x) for x in packed] == [p.nbytes for p in made.parameters]
    assert b"\x00\x00\xc0\x3f" in packed  # 1.5 as f32


# ---- compilers
def programs() -> Iterator[tuple[str, VerifiedProgram]]:
    dev = ox.Device.open("sim-fast")
    for case in lessons.cases():
        if case.emitted:
            yield case.name, case.make(dev).launch.verify()
    for seed in range(PIPELINES):
        random = pipeline(seed)
        yield random.label, verify(random.program, random.launch())
    for case in cases(emitted=True)[::EVERY]:
        yield f"{case.group}: {case.name}", case.make(dev).launch.verify()


def test_lessons_that_contract_are_the_ones_that_are_not_written() -> None:
    dev = ox.Device.open("sim-fast")
    whole = [case for case in lessons.cases() if not case.emitted]
    assert {case.name[:2] for case in whole} == {"30", "31", "32"}
    for case in whole:
        with pytest.raises(DeviceCodeError) as caught:
            emitted(case.make(dev).launch.verify())
        assert caught.value.rule == "OX5569"


@cache
def sources() -> dict[str, str]:
    return {emitted(verified).source: label for label, verified in programs()}


@needs_nvrtc
@pytest.mark.parametrize("major", LIBRARIES)
def test_every_program_compiles_without_spills_and_warnings(major: int) -> None:
    for source, label in sources().items():
        made = nvrtc.compile_cubin(source, name="emitted.cu", options=["--ptxas-options=-v"], library=LIBRARIES[major])
        assert "warning" not in made.log, f"{label}: {made.log}"
        assert re.findall(r"(\d+) bytes (?:stack frame|spill \w+)", made.log) == ["0", "0", "0"], f"{label}: {made.log}"


@needs_nvrtc
def test_bounded_waits_compile() -> None:
    for source in list(sources())[:8]:
        assert nvrtc.compile_cubin(source, options=["-DOXIDECOPY_BOUNDED_WAITS"]).cubin


def test_the_sources_include_nothing() -> None:
    for source in sources():
        assert re.findall(r"#include.*", source) == ["#include <cuda.h>"]  # of the host part


def test_paths_stay_out_of_the_statements() -> None:
    made = lesson("01", "tma_load")
    assert str(Path.cwd()) not in kernel_of(made)
