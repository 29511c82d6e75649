"""Conditions left early: nothing but the user's source tells `return` from the end of a with-block."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import indent

import pytest

import oxidecopy as ox
from oxidecopy.errors import RecordError
from tests.helpers.recordings import recorded

LEFT = {
    "return": """
with cta.when(n > 3):
    return  # here
cta.sync()
""",
    "on one line": """
with cta.elect():
    with cta.when(n > 3): return  # here
    cta.barrier()
""",
    "in a loop of Python's, behind a long header": """
with (
    cta.elect(),
    cta.when((n > 3) & (n < 5)),
):
    for unrolled in range(2):
        if unrolled:
            return  # here
cta.sync()
""",
    "continue": """
for i in cta.range(n):
    with cta.when(i > 0):
        cta.sync()
        continue  # here
    cta.sync()
""",
    "break": """
for i in range(3):
    with cta.when(n > i):
        break  # here
""",
    "where a plain bool decides": """
with cta.when(False):
    return  # here
cta.sync()
""",
}
KEPT = {
    "loops of the block's own": """
with cta.when(n > 3):
    for i in range(3):
        if i == 1:
            continue
        if i == 2:
            break
        cta.sync()
""",
    "functions of the block's own": """
with cta.when(n > 3):
    def doubled(i):
        return i * 2
    doubled(n)
    (lambda: doubled(3))()
    cta.sync()
""",
    "blocks without a condition": """
cta.sync()
with cta.elect():
    return
""",
}


def pipe_of(body: str, path: Path, *, inside: bool) -> Callable[..., None]:
    """A pipeline function of a file; `inside` of another function, where it is indented."""
    text = "def pipe(cta, n):\n" + indent(body, "    ")
    if inside:
        text = "def make():\n" + indent(text, "    ") + "    return pipe\npipe = make()\n"
    path.write_text(text)
    names: dict[str, Callable[..., None]] = {}
    exec(compile(text, str(path), "exec"), names)
    names["pipe"].__annotations__ = {"cta": ox.Cta, "n": ox.Idx}
    return names["pipe"]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("name", LEFT)
def test_a_condition_left_early(tmp_path: Path, name: str, *, inside: bool) -> None:
    """What follows would be left out for all threads, and nothing would say so."""
    file = tmp_path / "pipe.py"
    with pytest.raises(RecordError) as caught:
        recorded(pipe_of(LEFT[name], file, inside=inside))
    assert caught.value.rules == ("OX1025",)
    site = caught.value.diagnostics[0].site
    assert site is not None
    assert file.read_text().splitlines()[site.line - 1].endswith("# here")


@pytest.mark.parametrize("name", KEPT)
def test_what_a_block_may_hold(tmp_path: Path, name: str) -> None:
    assert recorded(pipe_of(KEPT[name], tmp_path / "pipe.py", inside=True)).steps


def test_a_condition_without_a_source(tmp_path: Path) -> None:
    """As in a REPL: it is not seen there."""
    pipe = pipe_of("with cta.when(n > 7):\n    return\n", tmp_path / "pipe.py", inside=False)
    (tmp_path / "pipe.py").unlink()
    assert recorded(pipe).steps


def test_a_source_that_is_another_one_now(tmp_path: Path) -> None:
    pipe = pipe_of("with cta.when(n > 8):\n    return\n", tmp_path / "pipe.py", inside=False)
    (tmp_path / "pipe.py").write_text("return (\n" * 9)
    assert recorded(pipe).steps
