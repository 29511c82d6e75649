"""What the plugin touches of mypy, by mypy's own types: every attribute and method of mypy's classes that its source names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mypy.build import build
from mypy.modulefinder import BuildSource
from mypy.plugin import Plugin
from typing_extensions import override

from tests.mypy_plugin.analysed import ROOT, options_of

if TYPE_CHECKING:
    from mypy.options import Options
    from mypy.plugin import AttributeContext, MethodContext
    from mypy.types import Type


@dataclass(frozen=True)
class Scanned:
    """`errors` are mypy's on the plugin's own source, `names` are "module.Class.attribute"."""

    errors: list[str]
    names: set[str]


def scan(cache: Path) -> Scanned:
    """Checks the plugin's source against the mypy that runs."""
    files = sorted((ROOT / "oxidecopy" / "mypy_plugin").rglob("*.py"))
    sources = [BuildSource(str(path), ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")) for path in files]
    options = options_of(cache)
    plugin = _Touched(options, {str(path) for path in files})
    result = build(sources, options=options, extra_plugins=[plugin])
    return Scanned(result.errors, plugin.names)


class _Touched(Plugin):
    """Notes what is named in these files."""

    def __init__(self, options: Options, paths: set[str]) -> None:
        super().__init__(options)
        self.paths = paths
        self.names: set[str] = set()

    @override
    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        def see(ctx: AttributeContext) -> Type:
            self._note(ctx, fullname)
            return ctx.default_attr_type

        return see if fullname.startswith("mypy.") else None

    @override
    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        def see(ctx: MethodContext) -> Type:
            self._note(ctx, fullname)
            return ctx.default_return_type

        return see if fullname.startswith("mypy.") else None

    def _note(self, ctx: AttributeContext | MethodContext, fullname: str) -> None:
        if getattr(ctx.api, "path", "") in self.paths:
            self.names.add(fullname)
