"""Runs a pipeline function once against recording handles and returns the `Program`."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any

from oxidecopy.errors import Diagnostic, OxidecopyError, RecordError, Site
from oxidecopy.isa.expr import Sym, SymKind
from oxidecopy.program.program import ArrayParam, IdxParam, MapParam, Program, ScalarParam
from oxidecopy.typed.cta import ClusterCta, Cta
from oxidecopy.typed.descriptor import recorded_descriptor
from oxidecopy.typed.handles import RecordedArray
from oxidecopy.typed.recorder import Recorder
from oxidecopy.typed.signature import definition_site
from oxidecopy.typed.sites import in_package
from oxidecopy.typed.symbolic import ScalarValue, SymIdx

Plain = int | bool | str
ArgumentSpec = MapParam | ArrayParam | IdxParam | ScalarParam | Plain


def record(
    fn: Callable[..., None],
    *,
    threads: int,
    cluster: tuple[int, int, int],
    arguments: Mapping[str, ArgumentSpec],
    cta: Callable[[Recorder], Cta] | None = None,
) -> Program:
    """Records `fn` for these arguments; `cta` makes what it is given first (level 1 alone by default).

    Raises:
        RecordError: (or a subclass) at the user's line, for whatever the recorder refuses.
    """
    recorder = Recorder(fn.__name__, threads, cluster, definition_site(fn))
    handles = {name: _handle(recorder, name, spec) for name, spec in arguments.items()}
    make_cta = cta or (Cta if cluster == (1, 1, 1) else ClusterCta)
    try:
        fn(make_cta(recorder), **handles)
        return recorder.finish()
    except OxidecopyError:
        raise
    except (TypeError, AttributeError) as problem:
        site = _misuse(problem)
        if site is None:
            raise
        raise RecordError(
            Diagnostic(rule="OX1009", what="a call does not fit the API", got=str(problem), fix="compare with the signature", site=site)
        ) from problem
    finally:
        recorder.closed = True


def _handle(recorder: Recorder, name: str, spec: ArgumentSpec) -> Any:
    match spec:
        case MapParam():
            recorder.params.append(spec)
            return recorded_descriptor(recorder, spec)
        case ArrayParam():
            recorder.params.append(spec)
            return RecordedArray(recorder, spec)
        case IdxParam():
            recorder.params.append(spec)
            return SymIdx(Sym(name, SymKind.PARAM), recorder)
        case ScalarParam():
            recorder.params.append(spec)
            scalar: ScalarValue[Any] = ScalarValue(name, spec.dtype, recorder)
            return scalar
        case _:
            return spec


def _misuse(problem: Exception) -> Site | None:
    """The user's line, when Python refused a call of ours there (wrong number of arguments, no such method); None for the user's own bugs."""
    frames = traceback.extract_tb(problem.__traceback__)
    words = str(problem)
    names = ("ManagedBarrier", "TmaDescriptor", "SharedArray", "Cta", "Leader", "Group", "SymIdx", "Pred", "ScalarValue", "Elem")
    if not frames or in_package(frames[-1].filename) or not any(n in words for n in names):
        return None
    return Site(frames[-1].filename, frames[-1].lineno or 0, frames[-1].name)
