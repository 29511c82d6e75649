"""Fails first when mypy's internals move: every private or unstable thing that the plugin touches is here by name."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import mypy.nodes
import mypy.patterns
import pytest
from mypy.build import BuildResult, build
from mypy.errorcodes import ASSIGNMENT, MISC
from mypy.errors import ErrorInfo, Errors, ErrorWatcher
from mypy.modulefinder import BuildSource
from mypy.nodes import FuncDef, TypeInfo
from mypy.options import Options
from mypy.version import __version__

from oxidecopy.mypy_plugin import _config, _names
from oxidecopy.mypy_plugin._expressions import MEANINGS
from oxidecopy.mypy_plugin._features import CALLS
from oxidecopy.mypy_plugin._patterns import BINDERS
from oxidecopy.mypy_plugin._statements import RUNNERS
from oxidecopy.mypy_plugin._types import is_owned, signatures
from tests.mypy_plugin.analysed import Keeping, library, options_of
from tests.mypy_plugin.touched import scan
from tests.mypy_plugin.warm import Warm

_T = TypeVar("_T", bound=object)
# Bases of nodes, and nodes that never reach a checked body.
ABSTRACT = {"RefExpr", "TypeVarLikeExpr", "FakeExpression", "ImportBase"}
PLACES = {"NameExpr", "MemberExpr", "IndexExpr"}  # evaluated as places, not by the table


def concrete(base: type[_T]) -> set[type[_T]]:
    """All classes of mypy's below `base`."""
    found = {cls for sub in base.__subclasses__() for cls in (sub, *concrete(sub))}
    return {cls for cls in found if cls.__name__ not in ABSTRACT}


def test_this_version_is_in_the_tested_range() -> None:
    assert _config.tested(__version__)


def test_every_expression_has_a_meaning() -> None:
    assert {cls.__name__ for cls in concrete(mypy.nodes.Expression) - MEANINGS.keys()} == PLACES


def test_every_statement_has_one() -> None:
    assert concrete(mypy.nodes.Statement) - RUNNERS.keys() == set()


def test_every_pattern_has_one() -> None:
    assert concrete(mypy.patterns.Pattern) - BINDERS.keys() == set()


# What the plugin uses of mypy beyond syntax trees, types and the interface of plugins. The rest of this file says what it relies on.
INTERNALS = {
    "mypy.checker.DeferredNode.node",
    "mypy.checker.TypeChecker._type_maps",
    "mypy.checker.TypeChecker.deferred_nodes",
    "mypy.checker.TypeChecker.errors",
    "mypy.checker.TypeChecker.fail",
    "mypy.checker.TypeChecker.named_type",
    "mypy.checker.TypeChecker.note",
    "mypy.checker.TypeChecker.options",
    "mypy.checker.TypeChecker.pass_num",
    "mypy.checker.TypeChecker.scope",
    "mypy.checker.TypeChecker.tree",
    "mypy.checker.TypeChecker.tscope",
    "mypy.checker_shared.CheckerScope.top_level_function",
    "mypy.errors.ErrorInfo.blocker",
    "mypy.errors.ErrorInfo.code",
    "mypy.errors.ErrorInfo.column",
    "mypy.errors.ErrorInfo.line",
    "mypy.errors.ErrorInfo.message",
    "mypy.errors.ErrorInfo.severity",
    "mypy.errors.Errors._watchers",
    "mypy.errors.Errors.error_info_map",
    "mypy.errors.Errors.file",
    "mypy.errors.Errors.ignored_files",
    "mypy.errors.Errors.ignored_lines",
    "mypy.errors.Errors.is_error_code_enabled",
    "mypy.errors.Errors.is_ignored_error",
    "mypy.errors.Errors.used_ignored_lines",
    "mypy.nodes.SplittingVisitor.recurse_into_functions",
    "mypy.plugin.Plugin._modules",
    "mypy.scope.Scope.class_scope",
    "mypy.scope.Scope.function_scope",
}
OPEN = ("mypy.nodes.", "mypy.types.", "mypy.patterns.", "mypy.errorcodes.", "mypy.options.", "mypy.plugin.")


def test_all_that_is_named_of_mypy_is_there_and_internals_are_listed(cache: Path) -> None:
    scanned = scan(cache)
    assert scanned.errors == [], "this mypy's classes are not what the plugin takes them for"
    assert len(scanned.names) > 100
    assert {name for name in scanned.names if not name.startswith(OPEN)} == {name for name in INTERNALS if not name.startswith(OPEN)}
    assert scanned.names >= INTERNALS


TEXT = """\
import oxidecopy.tiles.cta, oxidecopy.host.pipeline
import oxidecopy as ox
def f(cta: ox.Cta, n: int) -> None:
    bar = cta.barrier()
    if n < 3:
        bar.init(1)
"""


@pytest.fixture(scope="module")
def world(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    cache = tmp_path_factory.mktemp("world") / "cache"
    library(warm, cache)
    options = options_of(cache)
    options.preserve_asts = options.export_types = True
    Keeping.kept = {}
    return build([BuildSource("one.py", "one", TEXT)], options=options, extra_plugins=[Keeping(options)])


def test_every_name_of_ours_is_there_and_the_types_are_alive_after_the_check(world: BuildResult) -> None:
    for name in {*_names.NOUNS, *_names.SYMBOLIC, _names.LAUNCHABLE, _names.DESCRIPTOR, _names.READY, _names.UNINIT}:
        assert isinstance(look_up(world, name), TypeInfo), name
    for name in (*CALLS, *_names.RECORDED_LOOPS, _names.PIPELINE):
        assert look_up(world, name) is not None, name
    kept = Keeping.kept["one"]
    assert any(isinstance(node, FuncDef) for node in kept.tree.defs)
    assert kept.types
    wait = look_up(world, f"{_names.BARRIER}.wait")
    assert any(is_owned(a) for s in signatures(wait) for a in s.arg_types), "Owned is no alias any more"


def look_up(result: BuildResult, fullname: str) -> object:
    """A class, function or method of the checked modules."""
    module, _, rest = fullname.rpartition(".")
    if module in result.files:
        return result.files[module].names[rest].node
    owner = look_up(result, module)
    found = owner.get(rest) if isinstance(owner, TypeInfo) else None
    return found.node if found is not None else None


@pytest.mark.usefixtures("world")
def test_a_node_that_is_not_known_is_an_error_and_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Keeping.kept["one"]
    assert kept.again(_config.Config()) == set()
    monkeypatch.delitem(MEANINGS, mypy.nodes.ComparisonExpr)
    assert kept.again(_config.Config()) == {(3, "oxidecopy-plugin")}
    assert any("unknown expression ComparisonExpr" in text for text in kept.texts)


def test_a_watcher_at_the_bottom_may_change_the_words() -> None:
    errors = Errors(Options())
    errors.set_file("one.py", "one", Options())

    def see(path: str, info: ErrorInfo) -> bool:
        info.message, info.code = f"{path}: other words", ASSIGNMENT
        return False

    assert errors._watchers == []
    errors._watchers.insert(0, ErrorWatcher(errors, filter_errors=see))
    with ErrorWatcher(errors, filter_errors=True):
        errors.report(1, 0, "held back", MISC)
    errors.report(2, 0, "words", MISC)
    ((info,),) = errors.error_info_map.values()
    assert (info.line, info.message, info.code) == (2, "one.py: other words", ASSIGNMENT)
    assert len(errors._watchers) == 1
