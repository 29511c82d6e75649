"""Runs a pipeline function once against recording handles and returns the `Program`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from oxidecopy.errors import Diagnostic, OxidecopyError, RecordError
from oxidecopy.isa.expr import Sym, SymKind
from oxidecopy.program.program import ArrayParam, IdxParam, MapParam, Program, ScalarParam
from oxidecopy.program.tensor_map import IM2COL_WIDE, TILE
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
from oxidecopy.typed.symbolic import SymIdx

Plain = int | bool | str
ArgumentSpec = MapParam | ArrayParam | IdxParam | ScalarParam | Plain


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
        from oxidecopy.typed import misuse  # a recording that goes well has no use for it

        site = misuse.site_of(problem)
        if site is None:
            raise
        diagnostic = Diagnostic(
            rule="OX1009",
            what="a call does not fit the API",
            got=str(problem).replace(RecordedArray.__name__, RecordedArray.shown_as),
            required=misuse.signature_of(problem) or "a call as it is documented",
            fix=misuse.instead(problem),
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
