"""Call sites as comments: `# file.py:12 function`, or `# :12` where file and function are those of the program's own line.

File and function are written bare when they are plain, else as JSON strings, so that any path survives. Comments of any other form are
no sites.
"""

from __future__ import annotations

import re
from typing import Final

from oxidecopy.errors import Site
from oxidecopy.program.text.lexer import quote, unquote

_SITE: Final = re.compile(
    r"""\# (?P<file>"(?:[^"\\]|\\.)*"|[^\s"]\S*)?:(?P<line>-?[0-9]{1,20})(?:[ ](?P<function>"(?:[^"\\]|\\.)*"|[^\s"]\S*))?\s*"""
)


def format_site(site: Site, home: Site | None = None) -> str:
    """The comment for `site`; `home` is the program's own."""
    if home is not None and site.file == home.file:
        return f"# :{site.line}" if site.function == home.function else f"# :{site.line} {_part(site.function)}"
    function = f" {_part(site.function)}" if site.function else ""
    return f"# {_part(site.file)}:{site.line}{function}"


def _part(text: str) -> str:
    plain = text and text.isprintable() and not text.startswith('"') and not any(c.isspace() for c in text)
    return text if plain else quote(text)


def parse_site(comment: str, home: Site | None = None) -> Site | None:
    """The site that a comment names, or None for any other comment."""
    match = _SITE.fullmatch(comment)
    if match is None:
        return None
    file, function = match["file"], match["function"]
    try:
        if file is not None:
            return Site(_value(file), int(match["line"]), _value(function or ""))
        if home is not None:
            return Site(home.file, int(match["line"]), home.function if function is None else _value(function))
    except ValueError:  # a string with a bad escape
        pass
    return None


def _value(part: str) -> str:
    return unquote(part) if part.startswith('"') else part
