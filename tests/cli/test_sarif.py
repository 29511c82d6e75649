"""SARIF: the shape that code hosts read."""

from __future__ import annotations

from pathlib import Path

from oxidecopy.cli.findings import Finding, Region
from oxidecopy.cli.sarif import document
from oxidecopy.errors import Cause, Diagnostic, Site
from oxidecopy.rules import all_rules

NOWHERE = Region()


def finding(rule: str, site: Site | None, *, region: Region = NOWHERE, causes: tuple[Cause, ...] = ()) -> Finding:
    return Finding(diagnostic=Diagnostic(rule=rule, what="it", got="3", fix="do", site=site, causes=causes), gate="types", region=region)


def test_places_rules_and_related_lines() -> None:
    root = Path("/src/pro ject")
    inside, outside = Site("/src/pro ject/a b.py", 7), Site("/lib/x.py", 2)
    region = Region(column=3, end_line=8, end_column=5)
    rows = [
        finding("OX3021", inside, region=region, causes=(Cause("armed here", outside), Cause("nowhere", None))),
        finding("arg-type", outside),
        finding("OX3021", None),
    ]
    (run,) = document(rows, root)["runs"]
    first, second, third = run["results"]
    assert [r["ruleIndex"] for r in run["results"]] == [0, 1, 0]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%20b.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 7, "startColumn": 3, "endLine": 8, "endColumn": 5}
    assert first["message"]["text"] == "it\ngot: 3\nfix: do"
    (related,) = first["relatedLocations"]
    assert related["physicalLocation"] == {"artifactLocation": {"uri": "file:///lib/x.py"}, "region": {"startLine": 2}}
    assert second["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///lib/x.py"}
    assert "locations" not in third
    ours, theirs = run["tool"]["driver"]["rules"]
    assert ours["fullDescription"]["text"] == all_rules()["OX3021"].why
    assert "```python" in ours["help"]["markdown"]
    assert theirs["shortDescription"]["text"] == "Check argument types in calls"
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == "file:///src/pro%20ject/"


def test_codes_of_the_plugin_have_pages() -> None:
    (run,) = document([finding("oxidecopy-moved", None)], Path("/src"))["runs"]
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["id"] == "oxidecopy-moved"
    assert rule["fullDescription"]["text"] == all_rules()["OX7001"].why
