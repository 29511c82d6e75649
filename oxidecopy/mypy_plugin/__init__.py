"""The mypy plugin: makes handles affine, and refuses what types alone cannot (`plugins = oxidecopy.mypy_plugin`).

A stranger to the rest of the package: it knows mypy, and our names as strings. What it checks is in docs/plugin.md.
"""

from __future__ import annotations

from mypy.plugin import Plugin

from oxidecopy.mypy_plugin._plugin import OxidecopyPlugin


def plugin(version: str) -> type[Plugin]:  # mypy's entry point
    """What mypy calls, with its own version."""
    return OxidecopyPlugin
