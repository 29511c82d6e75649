"""`cta.load_index`: what may be read, where the value may go."""

from __future__ import annotations

from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.errors import OxidecopyError
from oxidecopy.isa import ops
from oxidecopy.program.program import ArrayParam, IdxParam, MapParam
from oxidecopy.typed.cta import Cta
from oxidecopy.typed.recording import record

SPECS: dict[str, Any] = {
    "src": MapParam(name="src", dtype="f32", box_dim=(1, 8), element_strides=(1, 1)),
    "rows": ArrayParam(name="rows", dtype="u32", rank=1),
    "table": ArrayParam(name="table", dtype="i32", rank=2),
    "floats": ArrayParam(name="floats", dtype="f32", rank=1),
    "n": IdxParam(name="n"),
}


def recorded(body: Any) -> Any:
    return record(body, threads=64, cluster=None, arguments=SPECS, cta=Cta)


def refused(body: Any) -> tuple[str, ...]:
    with pytest.raises(OxidecopyError) as caught:
        recorded(body)
    assert all(d.site is not None and d.site.file == __file__ for d in caught.value.diagnostics)
    return caught.value.rules


def test_it_records_one_op_and_gives_an_index() -> None:
    def body(cta: Any, src: Any, rows: Any, table: Any, floats: Any, n: Any) -> None:
        row = cta.load_index(rows, n, below=src.shape[0])
        cta.load_index(rows, row // 2, below=7)
        tile, bar = cta.shared(src), cta.barrier().init(1)
        with cta.elect() as leader:
            token = bar.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, (row * 2 + 1, 0), token)
        bar.wait(token)

    found = [s.op for s in recorded(body).walk() if isinstance(s.op, ops.LoadIndex)]
    assert [op.array.name for op in found] == ["rows", "rows"]
    assert len({op.name for op in found}) == 2


BAD_READS: dict[str, Any] = {
    "rank 2": lambda cta, src, rows, table, floats, n: cta.load_index(table, 0, below=4),
    "floats": lambda cta, src, rows, table, floats, n: cta.load_index(floats, 0, below=4),
    "no bound": lambda cta, src, rows, table, floats, n: cta.load_index(rows, 0, below=0),
    "a bound that changes": lambda cta, src, rows, table, floats, n: cta.load_index(rows, 0, below=cta.block_idx.x),
    "a bound that was read": lambda cta, src, rows, table, floats, n: cta.load_index(rows, 0, below=cta.load_index(rows, 0, below=4)),
}


@pytest.mark.parametrize("name", BAD_READS)
def test_what_cannot_be_read_is_refused(name: str) -> None:
    assert refused(BAD_READS[name]) == ("OX1142",)


def looped(cta: Any, row: Any) -> None:
    for _ in cta.range(row):
        cta.sync()


def guarded(cta: Any, row: Any) -> None:
    with cta.when(row < 3):
        cta.sync()


def awaited(cta: Any, row: Any) -> None:
    cta.barriers(4).init(1)[row].wait_phase(0)


def staged(cta: Any, row: Any) -> None:
    cta.barriers(4).init(1)[0].wait_phase(row)


@pytest.mark.parametrize("use", [looped, guarded, awaited, staged], ids=lambda f: f.__name__)
def test_it_steers_nothing(use: Any) -> None:
    assert refused(lambda cta, src, rows, table, floats, n: use(cta, cta.load_index(rows, n, below=4))) == ("OX1140",)


def test_it_is_known_in_its_block_only() -> None:
    def body(cta: Any, src: Any, rows: Any, table: Any, floats: Any, n: Any) -> None:
        with cta.elect():
            row = cta.load_index(rows, 0, below=4)
        cta.load_index(rows, row, below=4)

    assert refused(body) == ("OX1146",)


def test_an_array_of_the_host_is_refused() -> None:
    given = ox.Device.open("sim").zeros((4,), ox.i32)
    assert refused(lambda cta, src, rows, table, floats, n: cta.load_index(given, 0, below=4))
    assert refused(lambda cta, src, rows, table, floats, n: cta.load_index(n, 0, below=4)) == ("OX1009",)
