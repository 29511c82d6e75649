"""Runs a pipeline function once against recording handles and returns the `Program`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from oxidecopy.errors import Diagnostic, OxidecopyError, RecordError, Site
from oxidecopy.isa.expr import Sym, SymKind
from oxidecopy.program.program import ArrayParam, IdxParam, MapParam, Program, ScalarParam
from oxidecopy.program.tensor_map import IM2COL_WIDE, TILE
from oxidecopy.typed import barrier, barrier_array, bulk, descriptor, descriptor_table, handles, leader, scalar, smem, symbolic, tokens
from oxidecopy.typed import cta as level1
from oxidecopy.typed.cta import ClusterCta, Cta
from oxidecopy.typed.descriptor import recorded_descriptor
from oxidecopy.typed.descriptor_table import recorded_table
from oxidecopy.typed.handles import RecordedArray
from oxidecopy.typed.im2col import Im2colDescriptor, Im2colWideDescriptor
from oxidecopy.typed.map_handle import MapHandle
from oxidecopy.typed.recorder import Recorder
from oxidecopy.typed.refusal import described, refuse
from oxidecopy.typed.scalar import ScalarValue
from oxidecopy.typed.signature import definition_site
from oxidecopy.typed.sites import in_package
from oxidecopy.typed.symbolic import SymIdx

Plain = int | bool | str
ArgumentSpec = MapParam | ArrayParam | IdxParam | ScalarParam | Plain

# Python's own errors name the class whose method was called wrongly; these are the classes of ours that users hold.
_ROOMS: Final = (barrier, barrier_array, level1, descriptor, descriptor_table, handles, leader, scalar, smem, symbolic, tokens)
_HANDLES: Final = frozenset(name for room in _ROOMS for name, cls in vars(room).items() if isinstance(cls, type) and name[0].isupper())
_FUNCTIONS: Final = frozenset(name for name in vars(bulk) if name.startswith("bulk_"))
# Of the rooms built on this one.
_TILES: Final = frozenset({"Elem", "Landed", "Maps", "Reshapes", "Ring", "Slot", "StageAt", "StageTuple", "StoreRing", "Work"})

_WHO: Final = "a block says which threads run its lines: `with cta.elect() as leader:`, `cta.thread(0)`, `cta.warps(0, 4)`, or roles"
# What the programs are called from which people come, and what it is here.
_ELSEWHERE: Final[dict[str, str]] = {
    **dict.fromkeys(("thread_idx", "threadIdx", "tid", "lane_id", "lane_idx", "warp_id", "warp_idx"), _WHO),
    **dict.fromkeys(("block_dim", "blockDim", "num_threads"), "the number of threads is `cta.threads`"),
    **dict.fromkeys(("blockIdx", "program_id", "block_id"), "the block's place in the grid is `cta.block_idx`, with `.x`, `.y` and `.z`"),
    **dict.fromkeys(("syncthreads", "sync_threads", "__syncthreads", "bar_sync"), "all threads of the CTA meet at `cta.sync()`"),
}


def record(
    fn: Callable[..., None],
    *,
    threads: int,
    cluster: tuple[int, int, int] | None,
    arguments: Mapping[str, ArgumentSpec],
    cta: Callable[[Recorder], Cta] | None = None,
) -> Program:
    """Records `fn` for these arguments.

    Args:
        fn: the pipeline function.
        threads: of one CTA.
        cluster: CTAs of a cluster in x, y, z; None for a pipeline without one.
        arguments: what is known of each parameter after `cta`, by name.
        cta: makes what the function is given first; level 1 alone by default.

    Raises:
        RecordError: (or a subclass) at the user's line, for whatever the recorder refuses.
    """
    recorder = Recorder(fn.__name__, threads, cluster, definition_site(fn))
    # All parameters first: loop counters take names that none of them has.
    recorder.params += [spec for spec in arguments.values() if isinstance(spec, MapParam | ArrayParam | IdxParam | ScalarParam)]
    values = {name: _handle(recorder, name, spec) for name, spec in arguments.items()}
    positional = [values.pop(p.name) for p in inspect.signature(fn).parameters.values() if p.name in values and p.kind is p.POSITIONAL_ONLY]
    try:
        untyped: Callable[..., object] = fn  # without a checker it may return anything
        make_cta = cta or (Cta if cluster is None else ClusterCta)
        result = untyped(make_cta(recorder), *positional, **values)
        if result is not None:
            what = f"pipeline function {fn.__name__!r} returns something: it must run to its end and return nothing"
            fix = "take out `return`, `yield` and `async`"
            refuse(RecordError, "OX1067", what, got=described(result), required="None", fix=fix, site=recorder.site)
        return recorder.finish()
    except OxidecopyError:
        raise
    except (TypeError, AttributeError) as problem:
        site = _misuse(problem)
        if site is None:
            raise
        diagnostic = Diagnostic(
            rule="OX1009",
            what="a call does not fit the API",
            got=str(problem).replace(RecordedArray.__name__, RecordedArray.shown_as),
            required="a call as it is documented",
            fix=_instead(problem),
            site=site,
        )
        raise RecordError(diagnostic) from problem
    finally:
        recorder.closed = True


def _handle(recorder: Recorder, name: str, spec: ArgumentSpec) -> Any:
    match spec:
        case MapParam():
            if spec.mode != TILE:
                made: type[MapHandle[Any, Any]] = Im2colWideDescriptor if spec.mode in IM2COL_WIDE else Im2colDescriptor
                return made._recorded_as(recorder, spec, None)
            return recorded_descriptor(recorder, spec) if spec.entries is None else recorded_table(recorder, spec)
        case ArrayParam():
            return RecordedArray(recorder, spec)
        case IdxParam():
            return SymIdx(Sym(name, SymKind.PARAM), recorder)
        case ScalarParam():
            value: ScalarValue[Any] = ScalarValue(name, spec.dtype, recorder)
            return value
        case _:
            return spec


def _instead(problem: TypeError | AttributeError) -> str:
    """What to write in place of a call that Python refused."""
    import difflib  # as traceback below

    words = str(problem)
    if "RecordedArray" in words:
        return "arrays are read and written by copies; a number out of one is `cta.load_index(array, i, below=n)`"
    if "SharedArray" in words and isinstance(problem, TypeError) and "()" not in words:
        return "elements are computed by a map, `cta.map(lambda v: v * 2, tile, out=tile)`, and stored by `cta.store(out, tile, at)`"
    if "Dim3" in words and isinstance(problem, TypeError):
        return "it has three parts: `cta.block_idx.x`, `.y` and `.z`"
    name = getattr(problem, "name", None)
    if name in _ELSEWHERE and isinstance(getattr(problem, "obj", None), Cta):
        return _ELSEWHERE[name]
    near = difflib.get_close_matches(name, [n for n in dir(problem.obj) if n[0] != "_"], 1) if name and hasattr(problem, "obj") else ()
    if near:
        return f"did you mean `{near[0]}`?"
    called = words.partition("()")[0] if isinstance(problem, TypeError) else ""  # "TmaDescriptor.g2s() missing 2 required ..."
    of = called if called.partition(".")[0] in _HANDLES | _FUNCTIONS else "Cta"
    return f"compare with the signature: help(ox.{of}), or your editor"


def _misuse(problem: Exception) -> Site | None:
    """The user's line, when Python refused a call of ours there (too few arguments, no such method); None for the user's own bugs."""
    # Our own `__getattr__` speaks for Python.
    import traceback  # a recording that goes well has no use for it

    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.name != "__getattr__"]
    words = "".join(c if c.isalnum() or c == "_" else " " for c in str(problem)).split()
    if in_package(frames[-1].filename) or (_HANDLES | _TILES | _FUNCTIONS).isdisjoint(words):
        return None
    return Site(frames[-1].filename, frames[-1].lineno or 0, frames[-1].name)
