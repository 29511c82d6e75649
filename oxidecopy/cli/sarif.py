"""The report of `oxidecopy check` as SARIF 2.1.0 (OASIS), which code hosts show beside the lines of a change."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from oxidecopy._version import __version__
from oxidecopy.cli.findings import Finding
from oxidecopy.errors import Site
from oxidecopy.rules import all_rules

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_MYPY_CODES: Final = "https://mypy.readthedocs.io/en/stable/_refs.html#code-"
_ROOT: Final = "SRCROOT"


def document(findings: Sequence[Finding], root: Path) -> dict[str, Any]:
    """One run; files under `root` are named from there, so that the host finds them in its checkout."""
    ids = list(dict.fromkeys(f.diagnostic.rule for f in findings))
    driver = {"name": "oxidecopy", "version": __version__, "semanticVersion": __version__, "rules": [_rule(i) for i in ids]}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {_ROOT: {"uri": f"{root.as_uri()}/"}},
                "results": [_result(f, ids.index(f.diagnostic.rule), root) for f in findings],
            }
        ],
    }


def _rule(rule: str) -> dict[str, Any]:
    # The page of a code of the plugin's has an id of its own; the code stands at the beginning of its title.
    pages = all_rules()
    page = pages.get(rule) or next((p for p in pages.values() if p.title.startswith(f"{rule}: ")), None)
    if page is None:
        described = _mypy_words(rule)
        help_text = {"text": f"{described}. See {_MYPY_CODES}{rule}"}
        return {"id": rule, "shortDescription": {"text": described}, "help": help_text, "helpUri": f"{_MYPY_CODES}{rule}"}
    parts = [page.why, f"Source: {page.source}."]
    marked = list(parts)
    for heading, code in (("Wrong", page.wrong), ("Right", page.right)):
        if code:
            parts.append(f"{heading}:\n{code.strip()}")
            marked.append(f"**{heading}**\n\n```python\n{code.strip()}\n```")
    return {
        "id": rule,
        "name": page.error,
        "shortDescription": {"text": page.title},
        "fullDescription": {"text": page.why},
        "help": {"text": "\n\n".join(parts), "markdown": "\n\n".join(marked)},
    }


def _mypy_words(code: str) -> str:
    if find_spec("mypy") is not None:
        from mypy.errorcodes import error_codes

        if code in error_codes:
            return error_codes[code].description
    return f"mypy's error code {code}"


def _result(finding: Finding, index: int, root: Path) -> dict[str, Any]:
    d = finding.diagnostic
    details = [f"{name}: {text}" for name, text in (("got", d.got), ("required", d.required), ("fix", d.fix)) if text]
    result: dict[str, Any] = {
        "ruleId": d.rule,
        "ruleIndex": index,
        "level": finding.level,
        "message": {"text": "\n".join([d.what, *details])},
        "properties": {"gate": finding.gate},
    }
    if d.site:
        result["locations"] = [{"physicalLocation": _place(d.site, root, finding)}]
    earlier = [(c.what, c.site) for c in d.causes if c.site]
    if earlier:
        result["relatedLocations"] = [
            {"id": n, "message": {"text": what}, "physicalLocation": _place(site, root)} for n, (what, site) in enumerate(earlier)
        ]
    return result


def _place(site: Site, root: Path, finding: Finding | None = None) -> dict[str, Any]:
    path = Path(site.file)
    artifact: dict[str, Any] = {"uri": path.absolute().as_uri()}
    if path.is_relative_to(root):
        # As a URI of its own the path would be absolute: quoted like one, then cut at the root.
        artifact = {"uri": path.as_uri().removeprefix(f"{root.as_uri()}/"), "uriBaseId": _ROOT}
    region: dict[str, int] = {"startLine": site.line}
    if finding is not None and finding.region.column:
        region["startColumn"] = finding.region.column
        if finding.region.end_line >= site.line:
            region |= {"endLine": finding.region.end_line, "endColumn": finding.region.end_column}
    return {"artifactLocation": artifact, "region": region}
