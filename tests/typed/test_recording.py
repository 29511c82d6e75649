"""Running a pipeline function: what is called, what of Python's errors are mistakes in the use of our API, and what is the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.errors import RecordError
from oxidecopy.program.program import IdxParam, MapParam
from oxidecopy.typed import cta as level1
from oxidecopy.typed.recording import record
from tests.helpers.recordings import recorded, refused


# ---- parameters
def test_parameters_of_all_kinds() -> None:
    def pipe(cta: ox.Cta, src: Any, n: ox.Idx, /, out: Any, flag: bool, *, alpha: Any, name: str = "x") -> None:
        assert (flag, name) == (True, "y")
        assert repr(n) == "SymIdx(n)"
        assert repr(alpha) == "Scalar[f32] 'alpha'"
        assert isinstance(src, ox.TmaDescriptor)
        assert out.dtype is ox.f32

    program = recorded(pipe, flag=True, name="y")
    assert [p.name for p in program.params] == ["src", "n", "out", "alpha"]


def test_plain_arguments_are_decided_while_recording() -> None:
    def pipe(cta: ox.Cta, n: int, sync: bool) -> None:
        for _ in range(n):
            if sync:
                cta.sync()

    assert [len(recorded(pipe, n=n, sync=s).steps) for n, s in ((3, True), (3, False), (0, True))] == [3, 0, 0]


def test_the_functions_result() -> None:
    def returns(cta: ox.Cta) -> int:
        return 3

    def yields(cta: ox.Cta) -> Any:
        cta.sync()
        yield

    def single(cta: ox.Cta) -> Any:
        return cta

    for pipe in (returns, yields, single):
        with pytest.raises(RecordError) as caught:
            recorded(pipe)
        assert caught.value.rules == ("OX1067",)


# ---- Python's errors
def too_few(cta: Any) -> None:
    cta.barrier().init(1).wait()  # here


def too_many(cta: Any) -> None:
    cta.sync(1)  # here


def keyword(cta: Any, src: Any) -> None:
    cta.shared(src, stage=2)  # here


def missing(cta: Any) -> None:
    cta.fence()  # here


def attribute(cta: Any) -> None:
    cta.sync(cta.block_idx.w)  # here


def unpacked(cta: Any) -> None:
    _, _ = cta.barrier()  # here


def entered(cta: Any) -> None:
    with cta.barrier():  # here
        pass


def iterated(cta: Any, src: Any) -> None:
    for _ in cta.shared(src):  # here
        pass


def indexed(cta: Any, src: Any) -> None:
    cta.shared(src)[0]  # here


def called(cta: Any, src: Any) -> None:
    src(0)  # here


def assigned(cta: Any, src: Any) -> None:
    src.note = 3  # here


def formatted(cta: Any) -> None:
    cta.sync(f"{cta.block_idx.x:d}")  # here


@pytest.mark.parametrize(
    "pipe",
    [too_few, too_many, keyword, missing, attribute, unpacked, entered, iterated, indexed, called, assigned, formatted],
)
def test_a_wrong_call_of_ours_is_refused_by_name(pipe: Callable[..., None]) -> None:
    refused(pipe, "OX1009")


NOTHING: Any = None


@pytest.mark.parametrize("mistake", [lambda: NOTHING + 1, lambda: NOTHING.x, lambda: len(NOTHING), lambda: int("x"), lambda: 1 // 0])
def test_the_users_own_errors_stay_themselves(mistake: Callable[[], object]) -> None:
    def pipe(cta: ox.Cta) -> None:
        mistake()

    with pytest.raises(Exception) as caught:  # whatever it is
        recorded(pipe)
    assert not isinstance(caught.value, ox.errors.OxidecopyError)


def test_our_own_bugs_are_not_blamed_on_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any) -> None:
        raise TypeError("Cta: a bug of ours")

    broken.__code__ = broken.__code__.replace(co_filename=level1.Cta.sync.__code__.co_filename)
    monkeypatch.setattr(level1.Cta, "sync", broken)

    def pipe(cta: ox.Cta) -> None:
        cta.sync()

    with pytest.raises(TypeError) as caught:
        recorded(pipe)
    assert not isinstance(caught.value, ox.errors.OxidecopyError)


# ---- one recording is like another
def test_a_failed_recording_leaves_nothing_behind() -> None:
    def pipe(cta: ox.Cta, fail: bool) -> None:
        cta.sync()
        if fail:
            cta.when(3)  # type: ignore[arg-type]  # here

    refused(pipe, "OX1027", fail=True)
    assert len(recorded(pipe, fail=False).steps) == 1


def test_arguments_in_any_order() -> None:
    def pipe(cta: ox.Cta, n: ox.Idx, src: Any) -> None: ...

    given: dict[str, Any] = {
        "src": MapParam(name="src", dtype="f32", box_dim=(8,), element_strides=(1,)),
        "n": IdxParam(name="n"),
    }
    program = record(pipe, threads=1, cluster=None, arguments=given)
    assert [p.name for p in program.params] == ["src", "n"]
