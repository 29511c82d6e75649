from __future__ import annotations

import csv
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.bench import gpu, gpu_table, launches, lines, one_way, work_rows
from oxidecopy.bench.copies import Copy, Schedule
from oxidecopy.bench.gpu import Rate
from oxidecopy.host.npy import write_json


def rate(schedule: Schedule, kib: int, ms: float, emitted_ms: float) -> Rate:
    copy = Copy(schedule=schedule, shape=(1 << 15, 1 << 15), box=(4 * kib, 64))
    return Rate(copy=copy, times_ms=(ms, ms, 2 * ms), emitted_ms=(emitted_ms,))


def test_rates_count_bytes_read_and_written() -> None:
    assert rate("one-shot", 8, 2.0, 2.0).tb_s == pytest.approx(4.294967296)


def test_rows_take_the_best_schedule_of_the_drivers_copy_and_each_of_its_cuda() -> None:
    rates = [(rate("one-shot", 8, 4.0, 3.8), 4.3), (rate("counter", 8, 2.0, 2.0), 4.3), (rate("persistent", 8, 1.0, 1.0), 4.3)]
    rates.append((rate("one-shot", 1, 9.0, 3.0), 4.3))
    rows = {row.what: row for row in gpu.copy_rows(rates)}
    assert list(rows) == [
        "counter, 8 KiB boxes, of cuMemcpyDtoD",
        "one-shot, 8 KiB boxes, of its CUDA C++",
        "counter, 8 KiB boxes, of its CUDA C++",
        "persistent, 8 KiB boxes, of its CUDA C++",
        "one-shot, 1 KiB boxes, of its CUDA C++",
    ]
    assert rows["counter, 8 KiB boxes, of cuMemcpyDtoD"].median == pytest.approx(4.294967296 / 4.3)
    assert [row.passed for row in rows.values()] == [False, False, True, True, False]
    assert rows["one-shot, 1 KiB boxes, of its CUDA C++"].target == 0.95


def test_the_result_says_what_it_was_measured_on(tmp_path: Path) -> None:
    driver = SimpleNamespace(cuDriverGetVersion=lambda: (0, 13000))
    context = SimpleNamespace(driver=driver, gpu=SimpleNamespace(name="NVIDIA X"))
    bench: Any = SimpleNamespace(engine=SimpleNamespace(context=context, code_file=SimpleNamespace(file="cubins/x.cubin")))
    rates = [(rate("counter", 8, 2.0, 2.0), 4.3)]
    data = gpu.as_data(bench, list(gpu.copy_rows(rates)), rates, 5)
    write_json(tmp_path / "r.json", data)
    read = json.loads((tmp_path / "r.json").read_text())
    assert (read["device"], read["driver"], read["command"]) == ("NVIDIA X", "CUDA 13.0", "oxidecopy bench gpu --runs 5")
    assert read["copies"][0]["memcpy_tb_s"] == 4.3


def test_the_headline_has_every_schedule_and_narrower_types() -> None:
    copies = list(gpu.headlines(gpu.NBYTES))
    assert all(c.nbytes == gpu.NBYTES for c in copies)
    assert {(c.schedule, c.box_bytes) for c in copies if c.dtype is ox.f32} == {
        (s, n) for s in ("one-shot", "counter", "persistent") for n in gpu.BOX_BYTES
    }
    assert {(c.dtype, c.box_bytes) for c in copies if c.dtype is not ox.f32} == {
        *((ox.bf16, n) for n in gpu.AT_ONCE), *((ox.u8, n) for n in gpu.AT_ONCE)
    }  # fmt: skip
    assert [c.box_bytes >> 10 for c in copies if c.dtype is ox.u8 and c.schedule == "counter"] == [64]
    assert all(c.per_sm * (c.stages * c.box_bytes + 2048) <= 227 << 10 for c in copies if c.schedule != "one-shot")


def test_types_have_rows_of_their_own() -> None:
    copy = Copy(schedule="one-shot", shape=(1 << 15, 1 << 16), box=(8, 1024), dtype=ox.bf16)
    rates = [(rate("one-shot", 16, 4.0, 4.0), 4.3), (Rate(copy=copy, times_ms=(2.0,)), 4.3)]
    assert [row.what for row in gpu.copy_rows(rates)] == [
        "one-shot, 16 KiB boxes, of cuMemcpyDtoD",
        "one-shot, 16 KiB boxes, of its CUDA C++",
        "one-shot, 16 KiB boxes of bf16, of cuMemcpyDtoD",
    ]


def test_what_was_measured_is_kept_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = list(gpu.copy_rows([(rate("counter", 8, 2.0, 2.0), 4.3)]))
    for module, names in {
        launches: ("launch_rows", "first_rows"),
        one_way: ("one_way_rows", "like_plain_rows"),
        work_rows: ("work_rows",),
        lines: ("host_rows",),
    }.items():
        for name in names:
            monkeypatch.setattr(module, name, lambda *_: iter(rows[:1]))
    monkeypatch.setattr(gpu, "headline", lambda *_: iter([(rate("counter", 8, 2.0, 2.0), 4.3)]))
    kept: list[tuple[int, int]] = []
    bench: Any = None
    made, rates = gpu.measure_all(bench, 3, lambda _: None, lambda rows, rates: kept.append((len(rows), len(rates))))
    assert (len(made), len(rates)) == (8, 1)
    assert kept == [(1, 0), (2, 0), *((n, 1) for n in range(3, 9))]


# ---- the table
def test_the_table_has_every_rank_and_fits_into_shared_memory() -> None:
    copies = list(gpu_table.copies())
    assert {c.per_sm for c in copies if c.schedule == "one-shot" and c.box_bytes == 8 << 10} == {0, gpu.AT_ONCE[8 << 10]}
    assert {c.stages for c in copies if c.schedule == "counter"} == {2, 4, 8}
    assert {len(c.box) for c in copies} == {1, 2, 3, 4, 5}
    assert all(c.schedule == "one-shot" or c.per_sm * c.stages * c.box_bytes < 228 << 10 for c in copies)
    assert len(copies) == len({str(c) for c in copies}) > 300


def entries() -> list[gpu_table.Entry]:
    made = []
    for schedule, swizzle in (("one-shot", ox.SwizzleNone), ("counter", ox.Swizzle128B)):
        for kib in (1, 2):
            copy = Copy(schedule=schedule, shape=(1024, 1024), box=(8 * kib, 32), swizzle=swizzle)  # type: ignore[arg-type]
            made.append(gpu_table.Entry(copy=copy, tb_s=float(kib), of_memcpy=kib / 4))
    return made


def test_csv(tmp_path: Path) -> None:
    gpu_table.write_csv(tmp_path / "t.csv", entries())
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert rows[0] == {
        "schedule": "one-shot", "rank": "2", "box": "8x32", "box_bytes": "1024", "swizzle": "None", "stages": "", "per_sm": "1",
        "tb_s": "1.0", "of_memcpy": "0.25",
    }  # fmt: skip
    assert (rows[3]["swizzle"], rows[3]["stages"]) == ("128B", "4")


def test_a_table_is_drawn_where_it_was_not_measured(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    gpu_table.write_csv(tmp_path / "t.csv", entries())
    assert [e.fields() for e in gpu_table.read_csv(tmp_path / "t.csv")] == [e.fields() for e in entries()]
    assert gpu_table.main([str(tmp_path / "t.csv"), str(tmp_path / "t.png")]) == 0
    assert (tmp_path / "t.png").exists()


def test_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    gpu_table.write_plot(tmp_path / "t.png", entries(), "a title")
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
