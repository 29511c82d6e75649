from __future__ import annotations

import gzip
import json
from pathlib import Path

from oxidecopy.conformance import oracles
from oxidecopy.conformance.oracle_cases import cases
from tests.helpers.command import command


def test_what_is_written_is_held_against_a_device(tmp_path: Path) -> None:
    path = tmp_path / "some.gz"
    few = oracles.read(Path(__file__).parents[1] / "cases" / "h200" / "oracles.json.gz")
    path.write_bytes(oracles.as_bytes(oracles.Recorded(about={**few.about, "copies": 4}, oracles=few.oracles[:2])))
    result = command("conformance", "record", str(path), "--check", "--device", "sim")
    assert (result.exit_code, "2 of 2 programs (4 copies) as recorded, on sim" in result.output) == (0, True)
    data = json.loads(gzip.decompress(path.read_bytes()))
    data["cases"][1]["result"] = "ff" + data["cases"][1]["result"][2:]
    path.write_bytes(gzip.compress(json.dumps(data).encode()))
    result = command("conformance", "record", str(path), "--check", "--device", "sim")
    assert result.exit_code == 1
    assert "elements differ, first at" in result.output


def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    for content in (b"nothing", gzip.compress(b"[]"), gzip.compress(b'{"about": {}, "cases": [{}]}')):
        path = tmp_path / "wrong.gz"
        path.write_bytes(content)
        result = command("conformance", "record", str(path), "--check", "--device", "sim")
        assert (result.exit_code, "OX6027" in result.output) == (2, True)
    assert "OX6027" in command("conformance", "record", str(tmp_path / "missing.gz"), "--check", "--device", "sim").output


def test_the_set_is_large() -> None:
    assert len(cases()) > 900
