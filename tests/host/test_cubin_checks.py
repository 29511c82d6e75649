"""Declarations held against cubins: each parameter, each option, with one broken twin for each that fits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oxidecopy.engines.cuda.elf import KernelInfo, ParameterInfo
from oxidecopy.host.cubin_checks import OptionFaults, signature_faults
from oxidecopy.typed.signature import Formal

MAP = Formal(name="p", kind="map", dtype="f32", rank=2)
ARRAY = Formal(name="p", kind="array", dtype="f32", rank=2)
IDX = Formal(name="p", kind="idx")
PLAIN = KernelInfo(
    name="k", arch="sm_90a", registers=32, shared_bytes=0, local_bytes=0, parameters=(), parameter_bytes=0, max_threads=1024, block=None,
    cluster=None, max_cluster=None, grid_counts_clusters=False,
)  # fmt: skip


def scalar(dtype: str) -> Formal:
    return Formal(name="p", kind="scalar", dtype=dtype)


def taking(*parameters: tuple[int, int]) -> KernelInfo:
    """A kernel with parameters of these sizes and alignments."""
    return replace(PLAIN, parameters=tuple(ParameterInfo(offset=16 * i, size=s, alignment=a) for i, (s, a) in enumerate(parameters)))


# ---- parameters
FITS: list[tuple[Formal, int, int]] = [
    (MAP, 128, 64), (MAP, 128, 128), (ARRAY, 8, 8), (ARRAY, 8, 64), (IDX, 4, 4), (IDX, 8, 8), (IDX, 4, 128), (scalar("f32"), 4, 4),
    (scalar("f64"), 8, 8), (scalar("u8"), 1, 1), (scalar("bf16"), 2, 2), (scalar("e4m3"), 1, 1), (scalar("i64"), 8, 8),
]  # fmt: skip
FITS_NOT: list[tuple[Formal, int, int, str]] = [
    (MAP, 128, 32, "alignas(64)"),
    (MAP, 8, 8, "const __grid_constant__ CUtensorMap p"),
    (MAP, 4, 4, "for 4 bytes declare ox.Idx or ox.Scalar of u32, i32, f32"),
    (ARRAY, 128, 64, "the place of an ox.TmaDescriptor"),
    (ARRAY, 4, 4, "ox.Idx"),
    (ARRAY, 8, 4, "ox.GlobalArray or ox.Idx"),
    (IDX, 2, 2, "for 2 bytes declare ox.Scalar of u16, f16, bf16"),
    (IDX, 16, 16, "one by one"),
    (IDX, 8, 4, "ox.GlobalArray or ox.Idx or ox.Scalar of u64, i64, f64"),
    (scalar("f32"), 8, 8, "f64"),
    (scalar("f64"), 4, 4, "f32"),
    (scalar("f64"), 8, 4, "f64"),
    (scalar("u8"), 2, 2, "u16"),
    (scalar("f32"), 12, 4, "one by one"),
]


@pytest.mark.parametrize(("formal", "size", "alignment"), FITS, ids=str)
def test_a_parameter_fits(formal: Formal, size: int, alignment: int) -> None:
    assert list(signature_faults([formal], taking((size, alignment)), None)) == []


@pytest.mark.parametrize(("formal", "size", "alignment", "fix"), FITS_NOT, ids=str)
def test_a_parameter_does_not_fit(formal: Formal, size: int, alignment: int, fix: str) -> None:
    (found,) = signature_faults([formal], taking((size, alignment)), None)
    assert found.rule == "OX5407"
    assert "'p'" in found.what
    assert found.required == f"parameter 0 of the cubin: {size} bytes at offset 0, aligned to {alignment}"
    assert str(formal) in found.got
    assert fix in found.fix


def test_each_parameter_is_named() -> None:
    formals = [formal._replace(name=name) for formal, name in ((MAP, "src"), (ARRAY, "out"), (IDX, "n"))]
    found = list(signature_faults(formals, taking((8, 8), (8, 8), (1, 1)), None))
    assert [d.what.split("'")[1] for d in found] == ["src", "n"]


@pytest.mark.parametrize(
    ("formals", "rules"), [([], ["OX5406"]), ([ARRAY], ["OX5406"]), ([ARRAY, IDX], []), ([ARRAY, IDX, IDX], ["OX5406"])]
)
def test_their_number(formals: list[Formal], rules: list[str]) -> None:
    found = list(signature_faults(formals, taking((8, 8), (4, 4)), None))
    assert [d.rule for d in found] == rules
    for diagnostic in found:
        assert diagnostic.required == "2, of 8, 4 bytes"
        assert diagnostic.got.startswith(str(len(formals)))


# ---- options
def threads(given: object, kernel: KernelInfo = PLAIN) -> list[str]:
    faults = OptionFaults(kernel, 90, None)
    faults.threads(given)
    return [f"{d.rule} {d.what}" for d in faults.found]


@pytest.mark.parametrize("given", [1, 33, 1024, (32,), (16, 16), (4, 4, 64)])
def test_blocks(given: Any) -> None:
    assert threads(given) == []


@pytest.mark.parametrize("given", [0, -1, 1025, 2.0, True, "128", None, (), (32, 0), (2, 2, 2, 2), (32, 33), (1, 1, 65)])
def test_no_blocks(given: Any) -> None:
    (found,) = threads(given)
    assert found.startswith("OX5408 kernel 'k' ")


def test_blocks_of_a_kernel_with_bounds() -> None:
    bounded = replace(PLAIN, max_threads=128)
    assert threads(128, bounded) == []
    assert len(threads(129, bounded)) == 1
    fixed = replace(PLAIN, block=(64, 2, 1), max_threads=128)
    assert threads((64, 2), fixed) == []
    assert len(threads(128, fixed)) == 1


# 65,536 registers of a block, given to threads in eights and to warps in fours.
@pytest.mark.parametrize(("registers", "most"), [(64, 1024), (65, 896), (128, 512), (168, 384), (255, 256)])
def test_blocks_and_registers(registers: int, most: int) -> None:
    kernel = replace(PLAIN, registers=registers)
    assert threads(most, kernel) == []
    if most < 1024:
        (found,) = threads(most + 1, kernel)
        assert "registers" in found


def cluster(given: object, kernel: KernelInfo = PLAIN, sm: int = 90) -> list[str]:
    faults = OptionFaults(kernel, sm, None)
    faults.cluster(given)
    return [d.rule for d in faults.found]


def test_clusters() -> None:
    assert [cluster(given) for given in (None, 1, 2, (2, 1), (4, 4), (2, 2, 4))] == [[]] * 6
    assert [cluster(given) for given in (0, 17, (2, 9), "2", 2.0, (1, 1, 1, 1))] == [["OX5408"]] * 6
    bounded = replace(PLAIN, max_cluster=8)
    assert cluster(8, bounded) == []
    assert cluster(16, bounded) == ["OX5408"]
    compiled = replace(PLAIN, cluster=(2, 1, 1))
    assert cluster(2, compiled) == cluster(None, compiled) == []
    assert cluster((1, 2), compiled) == ["OX5408"]
    assert cluster(2, sm=80) == ["OX5408"]
    assert cluster(1, sm=80) == []
    assert cluster(None, replace(compiled, grid_counts_clusters=True)) == ["OX5408"]


def shared(given: object, kernel: KernelInfo = PLAIN, sm: int = 90) -> list[str]:
    faults = OptionFaults(kernel, sm, None)
    faults.shared_bytes(given)
    return [f"{d.rule} {d.required}" for d in faults.found]


def test_shared_memory() -> None:
    own = replace(PLAIN, shared_bytes=1_448)
    assert shared(0) == shared(232_448) == shared(231_000, own) == shared(101_376, sm=120) == []
    assert shared(232_449) == ["OX5408 at most 232,448: the 232,448 of sm_90a"]
    assert shared(231_001, own) == ["OX5408 at most 231,000: the 232,448 of sm_90a, less 1,448 of its own"]
    assert len(shared(101_377, sm=120)) == 1
    assert [len(shared(given)) for given in (-1, 1.5, None, "0", True)] == [1] * 5
