"""Mypy's own messages on our classes: what they say with the plugin. `# M code: words` is part of the message of that line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy.build import build
from mypy.modulefinder import BuildSource

from oxidecopy.mypy_plugin._config import Config
from oxidecopy.mypy_plugin._features import boxes, wrong_state
from tests.mypy_plugin.analysed import Caching, only_here, options_of

MARK = re.compile(r"# M ([\w-]+): (.+)$")

HEAD = """\
from __future__ import annotations
from typing import Literal as L
import oxidecopy as ox

def take(b: ox.ManagedBarrier[ox.Ready]) -> None: ...
def fresh(b: ox.ManagedBarrier[ox.Uninit]) -> None: ...
B64 = ox.Box2[L[64], L[64]]
B32 = ox.Box2[L[64], L[32]]
S32 = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B, B32]
S64 = ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, B64]
N32 = ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, B32]
H32 = ox.TmaDescriptor[ox.f16, ox.D2, ox.Swizzle128B, B32]
"""

STATES = """\
def first(bar: ox.ManagedBarrier[ox.Uninit], bars: ox.ManagedBarriers[ox.Uninit]) -> None:
    bar.arrive()  # M misc: Barrier "bar" is not initialised yet (as the parameter is declared): "arrive" needs one that is Ready
    bars[0]  # M misc: Barriers "bars" are not initialised yet (as the parameter is declared): an index needs ones that are Ready
    for _ in bars:  # M misc: a loop over them needs ones that are Ready
        pass

def straight(cta: ox.Cta) -> None:
    bar = cta.barrier()
    bar.arrive()  # M misc: Barrier "bar" is not initialised yet ("barrier" made it on line 20): "arrive" needs one that is Ready
    take(bar)  # M arg-type: Barrier "bar" is not initialised yet ("barrier" made it on line 20): argument 1 to "take" needs
    r = bar.init(1)
    r.arrive()
    fresh(r)  # M arg-type: Barrier "r" is Ready already ("init" made it so on line 23): argument 1 to "fresh" needs
    dead = r.inval()
    dead.arrive_remote(0)  # M misc: Barrier "dead" is Invalidated ("inval" made it so on line 26): "arrive_remote" needs one that is Ready

def nameless(cta: ox.Cta, held: list[ox.ManagedBarrier[ox.Ready]]) -> None:
    cta.barrier().arrive()  # M misc: This barrier is not initialised yet: "arrive" needs one that is Ready
    held[0].init(1)  # M misc: Barrier "held[...]" is Ready already: "init" needs one that is Uninit; initialise it once
    method = cta.barrier().wait  # M misc: This barrier is not initialised yet: "wait" needs one that is Ready
    cta.barriers(2).inval()  # M misc: These barriers are not initialised yet: "inval" needs ones that are Ready
    cta.barriers(2).init(1).inval()

def rebound(cta: ox.Cta) -> None:
    bar = cta.barrier()
    bar = bar.init(1)  # M assignment: This variable holds a barrier that is Uninit, and is given one that is Ready: give the new handle

def kinds(cta: ox.Cta) -> None:
    with cta.elect() as leader:
        general = cta.barrier(kind=ox.GeneralBarrier).init(1)
        general.expect_tx(leader, 0)  # M misc: Barrier "general" does not count bytes, being GeneralBarrier: "expect_tx" needs TmaBarrier
        bytes_too = cta.barrier().init(1)
        bytes_too.expect_tx(leader, 0)
"""

BOXES = """\
def wide(src: S64) -> None: ...
def narrow(src: S32) -> None: ...

def calls(s32: S32, s64: S64, n32: N32, h32: H32) -> None:
    narrow(s32)
    narrow(s64)  # M oxidecopy-box: TMA box: "s64" moves boxes of 64 x 64, "narrow" takes 64 x 32, and its swizzle is SwizzleNone instead
    narrow(n32)  # M arg-type: incompatible type
    narrow(h32)  # M arg-type: incompatible type
    wide(n32)  # M oxidecopy-box: TMA box: "n32" moves boxes of 64 x 32, "wide" takes 64 x 64
    wide(n32)  # type: ignore[arg-type]
    wide(n32)  # type: ignore[oxidecopy-box]

@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def stores(cta: ox.Cta, s32: S32, s64: S64, h32: H32) -> None:
    ring = cta.ring(stages=2, tiles=(s32,))
    with cta.consumers() as group:
        for at in cta.tiles(s32):
            with ring.consume(group) as (x,):
                group.store(s64, x, at)  # M oxidecopy-box: TMA box: "store" of a tile of 64 x 32 ("x") by a map whose box is 64 x 64
                group.store(h32, x, at)  # M misc: Cannot infer value of type parameter
                group.store(s32, x, at)
"""


def said(text: str, cache: Path) -> dict[int, list[tuple[str, str]]]:
    """Code and words of mypy's errors by line, without what the pass finds."""
    options = options_of(cache)
    only_here(options, "one", warn_unused_ignores=True)
    plugin = Caching(options)
    plugin.config = Config()
    found: dict[int, list[tuple[str, str]]] = {}
    for line in build([BuildSource("one.py", "one", text)], options=options, extra_plugins=[plugin]).errors:
        if (match := re.match(r"one.py:(\d+): (?:error|note): (.*?)(?:  \[([\w-]+)\])?$", line)) and match[3] not in OURS:
            found.setdefault(int(match[1]), []).append((match[3], match[2]))
    return found


OURS = {"oxidecopy-moved", "oxidecopy-borrowed"}


@pytest.mark.parametrize("body", [STATES, BOXES], ids=["states", "boxes"])
def test_the_words(cache: Path, body: str) -> None:
    text = HEAD + body
    wanted = {n: match for n, line in enumerate(text.splitlines(), 1) if (match := MARK.search(line))}
    found = said(text, cache)
    assert found.keys() == wanted.keys(), found
    for line, match in wanted.items():
        ((code, words),) = found[line]
        assert code == match[1], words
        assert match[2] in words


def test_without_the_rules_mypys_words_stay(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrong_state, "said", lambda *_: None)
    monkeypatch.setattr(boxes, "said", lambda *_: None)
    found = said(HEAD + STATES + BOXES, cache)
    words = [text for errors in found.values() for _, text in errors]
    assert any(text.startswith("Invalid self argument") for text in words)
    assert not any("TMA box" in text or "not initialised" in text for text in words)


def test_a_code_that_is_switched_off_leaves_mypys_error(cache: Path) -> None:
    found = said(f"# mypy: disable-error-code=oxidecopy-box\n{HEAD}{BOXES}", cache)
    codes = [code for errors in found.values() for code, _ in errors]
    assert "oxidecopy-box" not in codes
    assert codes.count("arg-type") >= 4


FIRST = """\
import oxidecopy as ox
from typing import Literal as L
S64 = ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, ox.Box2[L[64], L[64]]]
N32 = ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, ox.Box2[L[64], L[32]]]
def narrow(src: N32) -> None: ...
def calls(cta: ox.Cta, s64: S64) -> None:
    narrow(s64){}
    cta.barrier()
"""


def test_an_ignore_before_the_librarys_first_call_holds(cache: Path) -> None:
    assert [code for ((code, _),) in said(FIRST.format(""), cache).values()] == ["oxidecopy-box"]
    assert said(FIRST.format("  # type: ignore[oxidecopy-box]"), cache) == {}
    assert said(FIRST.format("  # type: ignore[arg-type]"), cache) == {}
    other = said(FIRST.format("  # type: ignore[misc]"), cache)
    assert [code for code, _ in next(iter(other.values()))] == ["unused-ignore", "oxidecopy-box"]


def test_other_classes_are_left_alone(cache: Path) -> None:
    text = """
import oxidecopy as ox
from typing import Generic, TypeVar
T = TypeVar("T")
class Own(Generic[T]):
    def only(self: "Own[int]") -> None: ...
def f(own: Own[str], bar: ox.ManagedBarrier[ox.Ready], number: int) -> None:
    bar.arrive()
    own.only()
    f(own, bar, "a")
"""
    found = said(text, cache)
    assert [errors[0][1].split('"')[0] for errors in found.values()] == ["Invalid self argument ", "Argument 3 to "]
