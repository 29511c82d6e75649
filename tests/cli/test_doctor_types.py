"""What `oxidecopy doctor` says of type checkers, and of what works here."""

from __future__ import annotations

from pathlib import Path

import pytest

from oxidecopy.cli import doctor_types, doctor_works, nvidia_tools
from oxidecopy.cli.doctor_types import types_facts
from oxidecopy.cli.doctor_works import work_facts
from oxidecopy.cli.facts import Fact
from oxidecopy.engines.cuda import nvrtc


@pytest.fixture(autouse=True)
def _somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def by_topic() -> dict[str, Fact]:
    return {fact.topic: fact for fact in types_facts()}


# ---- mypy and the plugin
def test_the_plugin_loads_into_the_installed_mypy() -> None:
    facts = by_topic()
    assert facts["mypy"].state == facts["mypy plugin"].state == "ok"
    assert facts["mypy plugin"].value == "loads"


@pytest.mark.parametrize(("mypy", "state", "value"), [("1.15.0", "missing", "does not know mypy 1.15.0"), ("", "missing", "not loaded")])
def test_another_mypy_or_none(monkeypatch: pytest.MonkeyPatch, mypy: str, state: str, value: str) -> None:
    monkeypatch.setattr(doctor_types, "version_of", lambda package: mypy if package == "mypy" else "")
    facts = by_topic()
    assert (facts["mypy plugin"].state, facts["mypy plugin"].value) == (state, value)
    assert "other checkers" not in facts
    works = {fact.topic: fact for fact in work_facts(list(facts.values()))}
    assert (works["checked types"].value, works["checked types"].state) == ("no", "missing")
    assert value in works["checked types"].note


@pytest.mark.parametrize(
    ("text", "state", "note"),
    [
        ("[mypy]\nplugins = a, oxidecopy.mypy_plugin\n[oxidecopy-mypy]\nleaks = note\n", "ok", "names the plugin; leaks = note"),
        ("[mypy]\nstrict = True\n", "missing", "without the plugin"),
        ("[mypy]\nplugins = oxidecopy.mypy_plugins\n", "missing", "without the plugin"),
        ("[mypy\n", "missing", "cannot be read"),
    ],
)
def test_the_configuration_that_mypy_would_read(tmp_path: Path, text: str, state: str, note: str) -> None:
    assert by_topic()["mypy config"].value == "none here"
    (tmp_path / "mypy.ini").write_text(text)
    fact = by_topic()["mypy config"]
    assert (fact.state, fact.value) == (state, str(tmp_path / "mypy.ini"))
    assert note in fact.note


# ---- what works
def works(*facts: Fact) -> dict[str, Fact]:
    plugin = Fact(topic="mypy plugin", value="loads", state="ok")
    return {fact.topic: fact for fact in work_facts([Fact(topic="mypy", value="2.4.0"), plugin, *facts])}


def test_where_everything_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia_tools, "toolkit", lambda: ("13.0", "/opt/nvcc"))
    monkeypatch.setattr(nvrtc, "find_library", lambda _: Path("libnvrtc.so"))
    found = works(Fact(topic="runs on cuda:1", value="yes", state="ok"), Fact(topic="runs on cuda:0", value="no"))
    assert {fact.value for fact in found.values()} == {"yes"}
    assert found["own kernels"].note == "ox.Cubin launches on cuda:1"
    assert "/opt/nvcc" in found["emitted code"].note


def test_where_things_are_missing_each_says_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia_tools, "toolkit", lambda: ("", ""))
    monkeypatch.setattr(nvrtc, "find_library", lambda major: None if major == 13 else Path("libnvrtc.so"))
    found = works()
    assert "nvcc" in found["emitted code"].note
    assert "on a GPU" in found["own kernels"].note
    assert "NVRTC of CUDA 13" in found["built kernels"].note


def test_an_answer_comes_whatever_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> object:
        raise RuntimeError("no")

    monkeypatch.setattr(doctor_types, "user_config", breaks)
    monkeypatch.setattr(doctor_works, "find_spec", breaks)
    assert by_topic()["mypy config"].value == "cannot be asked"
    assert works()["built kernels"].value == "cannot be asked"
