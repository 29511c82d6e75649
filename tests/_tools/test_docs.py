"""The tool that keeps README and docs true: what it runs, what it writes, what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from oxidecopy._tools import docs

PAGE = """\
# A page

<!-- python: made.py -->
```python
print("made")
```

<!-- python: shown.py -->
```python
print("shown")
```

<!-- output: python shown.py -->
```text
old
```

```text
not marked
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_writes_what_a_program_prints(page: Path) -> None:
    assert docs.main([], [page]) == 0
    assert page.read_text() == PAGE.replace("old\n", "shown\n")
    assert docs.main(["--check"], [page]) == 0


def test_check_writes_nothing_and_says_what_is_out_of_date(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert docs.main(["--check"], [page]) == 1
    assert page.read_text() == PAGE
    complaint = capsys.readouterr().err
    assert "page.md is out of date" in complaint
    assert "-old\n+shown\n" in complaint


def test_programs_that_no_command_shows_are_run_too(page: Path) -> None:
    ran: list[str] = []

    def output(command: str, folder: Path) -> str:
        assert (folder / "made.py").read_text() == 'print("made")\n'
        ran.append(command)
        return ""

    docs.main([], [page], output)
    assert sorted(ran) == ["python made.py", "python shown.py"]


def test_a_program_that_fails(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page.write_text(PAGE.replace('print("made")', "1 / 0"))
    assert docs.main([], [page]) == 1
    complaint = capsys.readouterr().err
    assert "page.md: python made.py fails" in complaint
    assert "ZeroDivisionError" in complaint


def test_a_command_that_breaks_down(tmp_path: Path) -> None:
    with pytest.raises(docs.BrokenPageError, match="KeyError"):
        docs.run("python -c \"raise KeyError('x')\"", tmp_path)


def test_a_command_that_refuses_is_shown(tmp_path: Path) -> None:
    assert "[OX6001]" in docs.run("oxidecopy check none.py", tmp_path)


def test_all_pages_are_looked_at(tmp_path: Path, page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.md"
    other.write_text(PAGE)
    assert docs.main(["--check"], [page, other]) == 1
    complaint = capsys.readouterr().err
    assert "page.md is out of date" in complaint
    assert "other.md is out of date" in complaint


def test_an_output_that_nobody_can_make(page: Path) -> None:
    page.write_text(PAGE.replace("output: python shown.py", "output: rm shown.py"))
    with pytest.raises(ValueError, match="'rm'"):
        docs.main([], [page])


def test_words_of_mypy_may_differ_from_run_to_run_but_not_its_places_and_codes(page: Path) -> None:
    old = 'typed.py:13: error: Argument 1 to "f" has type "int"  [arg-type]\n'
    page.write_text(PAGE.replace("old\n", old))

    def changed(before: str, after: str) -> bool:
        docs.main([], [page], lambda _command, _folder: old.replace(before, after))
        return page.read_text() != PAGE.replace("old\n", old)

    assert not changed("has type", "has incompatible type")
    assert changed(":13:", ":14:")
    page.write_text(PAGE.replace("old\n", old))
    assert changed("[arg-type]", "[misc]")


def test_a_table_of_a_result() -> None:
    rows = [
        {"what": "import", "median": 15.6, "unit": "ms", "better": "lower", "target": 50.0, "passed": True},
        {"what": "copy", "median": 244.4, "unit": "MB/s", "better": "higher", "target": 300.0, "passed": False},
    ]
    where = {"cpu": "a CPU", "platform": "Linux, 2 CPUs", "python": "3.11.7", "numpy": "2.4.6", "date": "2026-11-30T07:20:29Z"}
    assert docs.table({"rows": rows, **where}).splitlines()[2:] == [
        "| import | 16 ms | at most 50 |",
        "| copy | 244 MB/s | at least 300 (missed) |",
        "| *a CPU, Linux, 2 CPUs, Python 3.11.7, numpy 2.4.6, 2026-11-30* | | |",
    ]


def test_a_table_of_a_gpu() -> None:
    rows = [
        {"what": "copy", "median": 0.98412, "unit": "x", "better": "higher", "target": 0.98, "passed": True},
        {"what": "launch", "median": 4.26, "unit": "us", "better": "lower", "target": 5.0, "passed": True},
        {"what": "a peer to ours", "median": 2.5, "unit": "x", "better": "higher", "target": None, "passed": True},
        {"what": "another to ours", "absent": "not installed", "passed": True},
    ]
    where = {"device": "NVIDIA X", "driver": "CUDA 13.0", "cubin": "cubins/sm_90a.cubin", "date": "2026-11-30T07:20:29Z"}
    assert docs.table({"rows": rows, **where}).splitlines()[2:] == [
        "| copy | 0.984 | at least 0.98 |",
        "| launch | 4.3 us | at most 5 |",
        "| a peer to ours | 2.500 |  |",
        "| another to ours | not installed |  |",
        "| *NVIDIA X, driver for CUDA 13.0, cubins/sm_90a.cubin, 2026-11-30* | | |",
    ]


def test_some_rows_of_a_table() -> None:
    result = {"date": "2026-11-30T07:20:29Z", "rows": [
        {"what": "one, of a copy", "median": 1.0, "unit": "x", "better": "higher", "target": 0.9, "passed": True},
        {"what": "two", "median": 0.5, "unit": "x", "better": "higher", "target": 0.9, "passed": False},
        {"what": "three", "median": 2.0, "unit": "x", "better": "higher", "target": None, "passed": True},
    ]}  # fmt: skip
    assert docs.table(result, ["two", "one, of a copy"]).splitlines()[2:5] == [
        "| two | 0.500 | at least 0.9 (missed) |",
        "| one, of a copy | 1.000 | at least 0.9 |",
        "| all 3 rows | | 1 of 2 targets met |",
    ]
    assert docs.table(result, [", of a copy"]).splitlines()[2] == "| one, of a copy | 1.000 | at least 0.9 |"
    for name, number in (("four", 0), ("o", 2)):
        with pytest.raises(docs.BrokenPageError, match=f"{number} rows with '{name}'"):
            docs.table(result, ["one, of a copy", name])


def test_a_table_of_counts() -> None:
    numbers = {"programs": 3, "well_formed": 1, "mutants": 2, "equal": 1200, "loose": 0}
    where = {
        "command": "oxidecopy conformance fuzz",
        "device": "none",
        "cpu": "x86_64, 16 cores",
        "commit": "abc",
        "date": "2026-11-30T07:20:29Z",
    }
    assert docs.table({"numbers": numbers, "judges": "verifier and simulator", "disagreements": 0, **where}).splitlines()[2:] == [
        "| well-formed programs | 1 |",
        "| programs with one edit, or two | 2 |",
        "| on the device: every byte as on the simulator | 1,200 |",
        "| disagreements of verifier and simulator | 0 |",
        "| *`oxidecopy conformance fuzz`, x86_64, 16 cores, commit abc, 2026-11-30* | |",
    ]


def test_a_table_of_a_score() -> None:
    score = {"rules": 86, "rules_killed": 85, "places": 94, "places_killed": 94, "tests": 900}
    lines = docs.table({**score, "command": "python -m x", "date": "2026-11-30T07:20:29Z"}).splitlines()
    assert lines[2:4] == ["| rules of the verifier | 86 |", "| of these missed by a test | 85 |"]
    assert lines[-1] == "| *`python -m x`, 2026-11-30* | |"
