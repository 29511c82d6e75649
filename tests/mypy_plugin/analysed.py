"""The case files, checked once by mypy's own API with the plugin in it, and kept so that the pass can run over them again and again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast, final

from mypy.build import build
from mypy.modulefinder import BuildSource
from mypy.options import Options
from mypy.scope import Scope
from typing_extensions import override

from oxidecopy.mypy_plugin._config import Config
from oxidecopy.mypy_plugin._driver import Driver
from oxidecopy.mypy_plugin._plugin import OxidecopyPlugin
from tests.mypy_plugin.warm import Warm, importing

if TYPE_CHECKING:
    from mypy.errorcodes import ErrorCode
    from mypy.nodes import Context, Expression, MypyFile
    from mypy.plugin import ReportConfigContext
    from mypy.types import Type

    from oxidecopy.mypy_plugin._after import Waiting

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(__file__).with_name("cases")
MARK = re.compile(r"# E: \[([\w-]+)\]")
FOUND = re.compile(r"(?P<path>[^:]+):(?P<line>\d+):(?:\d+:)? error: (?P<words>.*?) *\[(?P<code>[\w-]+)\]$")

LEAKS = Config(leaks="error", leaks_at_end="error")

Marks = set[tuple[int, str]]


def marks(source: str) -> Marks:
    """Line and code of every `# E: [code]`."""
    return {(n, code) for n, line in enumerate(source.splitlines(), 1) for code in MARK.findall(line)}


def errors(lines: Iterable[str]) -> dict[str, Marks]:
    """Line and code of mypy's errors, by the file's name without its suffix."""
    found: dict[str, Marks] = {}
    for line in lines:
        if match := FOUND.match(line):
            found.setdefault(Path(match["path"]).stem, set()).add((int(match["line"]), match["code"]))
    return found


class Caching(OxidecopyPlugin):
    """The plugin; what it is told, and its own source, do not reach the library, so that all tests may use one cache of it."""

    @override
    def report_config_data(self, ctx: ReportConfigContext) -> Any:
        return None


class Keeping(Caching):
    """The plugin with all that it can find, which keeps what it was given."""

    kept: ClassVar[dict[str, Kept]] = {}

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.config = LEAKS

    @override
    def _analyse(self, waiting: Waiting) -> None:
        checker = waiting.checker
        self.kept[checker.tree.fullname] = Kept(checker.tree, dict(checker._type_maps[0]))
        super()._analyse(waiting)


@final
@dataclass
class Kept:
    """A checked file; it stands in for mypy's checker."""

    tree: MypyFile
    types: dict[Expression, Type]
    found: Marks = field(default_factory=set)
    texts: list[str] = field(default_factory=list)
    tscope: Scope = field(default_factory=Scope)

    @property
    def _type_maps(self) -> list[dict[Expression, Type]]:
        return [self.types]

    def fail(self, text: str, node: Context, *, code: ErrorCode) -> None:
        self.found.add((node.line, code.code))
        self.texts.append(text)

    def note(self, text: str, node: Context, *, code: ErrorCode) -> None:
        self.texts.append(text)

    def again(self, config: Config = LEAKS) -> Marks:
        """What the pass finds now."""
        self.found, self.texts = set(), []
        Driver(cast("Any", self), self.tree, config=config).file()
        return self.found


@dataclass(frozen=True)
class Checked:
    """The case files and what mypy said of them."""

    sources: Mapping[str, str]
    found: Mapping[str, Marks]
    output: list[str]
    kept: Mapping[str, Kept]

    def said(self, name: str) -> list[tuple[int, str, str]]:
        """Line, code and words of every error of a module."""
        matches = [match for line in self.output if (match := FOUND.match(line)) and Path(match["path"]).stem == name]
        return [(int(match["line"]), match["code"], match["words"]) for match in matches]


def options_of(cache: Path) -> Options:
    """Strict, but for what is not the cases' matter."""
    options = Options()
    options.cache_dir = str(cache)
    options.mypy_path = [str(ROOT)]
    options.show_traceback = True
    options.strict_optional = True
    options.check_untyped_defs = True
    options.follow_imports = "silent"
    return options


def only_here(options: Options, module: str, **changes: object) -> None:
    """Options of one module: a change for all of them would make the cache worthless."""
    options.per_module_options[module] = changes


def library(warm: Warm, cache: Path) -> None:
    """Fills a folder for `options_of` with what mypy knows of the library."""

    def make(empty: Path) -> None:
        options = options_of(empty)
        build([BuildSource("library.py", "library", importing(case_files().values()))], options=options, extra_plugins=[Caching(options)])

    warm.into(cache, "analysed", make)


def check(sources: Mapping[str, str], cache: Path) -> Checked:
    """Checks modules, given by name, with the plugin. The cache should have the library: trees that are to be kept are checked in full."""
    options = options_of(cache)
    options.preserve_asts = options.export_types = True
    Keeping.kept = {}
    build_sources = [BuildSource(f"{name}.py", name, text) for name, text in sources.items()]
    output = build(build_sources, options=options, extra_plugins=[Keeping(options)]).errors
    return Checked(sources, errors(output), output, {name: Keeping.kept[name] for name in sources if name in Keeping.kept})


def case_files() -> dict[str, str]:
    """The case files by module name."""
    return {f"case_{path.stem}": path.read_text() for path in sorted(CASES.glob("*.py"))}
