"""The mypy plugin: makes handles affine, and refuses what types alone cannot (`plugins = oxidecopy.mypy_plugin`).

A stranger to the rest of the package: it knows mypy, and our names as strings. What it checks is in docs/plugin.md.
"""

from __future__ import annotations

from mypy.plugin import Plugin

from oxidecopy.mypy_plugin import _config


def plugin(version: str) -> type[Plugin]:  # mypy's entry point
    """What mypy calls, with its own version."""
    if _config.tested(version):
        from oxidecopy.mypy_plugin._plugin import OxidecopyPlugin  # knows mypy's inside: imported where that is known to fit

        return OxidecopyPlugin
    from oxidecopy.mypy_plugin._untested import untested

    return untested(version)
