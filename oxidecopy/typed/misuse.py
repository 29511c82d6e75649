"""Python's own errors of a wrong call, told apart from the user's bugs, and what to write instead."""

from __future__ import annotations

import difflib
import inspect
import sys
import traceback
from typing import Any, Final, final

from oxidecopy.errors import Site
from oxidecopy.typed import barrier, barrier_array, bulk, descriptor, descriptor_table, handles, leader, scalar, smem, symbolic, tokens
from oxidecopy.typed import cta as level1
from oxidecopy.typed.handles import RecordedArray
from oxidecopy.typed.map_handle import MapHandle
from oxidecopy.typed.sites import in_package

# Python's own errors name the class whose method was called wrongly; these are the classes of ours that users hold.
_ROOMS: Final = (barrier, barrier_array, level1, descriptor, descriptor_table, handles, leader, scalar, smem, symbolic, tokens)
_HANDLES: Final = frozenset(name for room in _ROOMS for name, cls in vars(room).items() if isinstance(cls, type) and name[0].isupper())
_FUNCTIONS: Final = frozenset(name for name in vars(bulk) if name.startswith("bulk_"))
# Of the rooms built on this one.
_TILES: Final = frozenset({"BlockTile", "Elem", "Landed", "Maps", "Reshapes", "Ring", "Slot", "StageAt", "StageTuple", "StoreRing", "Work"})
_TILE_CLASSES: Final = ("SharedArray", "BlockTile", "Landed")

_WHO: Final = "a block says which threads run its lines: `with cta.elect() as leader:`, `cta.thread(0)`, `cta.warps(0, 4)`, or roles"
# What the programs are called from which people come, and what it is here.
_OF_CTA: Final[dict[str, str]] = {
    **dict.fromkeys(("thread_idx", "threadIdx", "tid", "lane_id", "lane_idx", "warp_id", "warp_idx"), _WHO),
    **dict.fromkeys(("block_dim", "blockDim", "num_threads"), "the number of threads is `cta.threads`"),
    **dict.fromkeys(("blockIdx", "program_id", "block_id"), "the block's place in the grid is `cta.block_idx`, with `.x`, `.y` and `.z`"),
    **dict.fromkeys(("syncthreads", "sync_threads", "__syncthreads", "bar_sync"), "all threads of the CTA meet at `cta.sync()`"),
    **dict.fromkeys(
        ("cluster_sync", "cta_rank", "cluster_size", "multicast_ring"), "it is a cluster's: cluster=2, and `cta: ox.ClusterCta`"
    ),
}
_OF_MAPS: Final[dict[str, str]] = {
    **dict.fromkeys(("box", "box_dim"), "the box is the shape of its tile: `cta.shared(desc).shape`"),
    **dict.fromkeys(("nbytes", "bytes", "box_bytes"), "the bytes of a copy are those of its tile: `cta.shared(desc).nbytes`"),
    **dict.fromkeys(("ndim", "rank"), "`len(desc.shape)`"),
    **dict.fromkeys(("load", "copy", "read"), "`desc.g2s(leader, tile, coords, token)`; a ring's is `slot.load(desc, at)`"),
    **dict.fromkeys(("store", "write"), "`desc.s2g(leader, tile, coords)`"),
}
_FACTORIES: Final[dict[str, str]] = {
    "SharedArray": "a tile is `cta.shared(desc)`, or `cta.shared(ox.f32, (64, 32), align=ox.A128)`",
    "SharedArrays": "tiles are `cta.shared(desc, stages=4)`",
    "ManagedBarrier": "a barrier is `cta.barrier().init(1)`",
    "ManagedBarriers": "barriers are `cta.barriers(4).init(1)`",
    "GlobalArray": "an array is a parameter of the pipeline",
    "Cta": "the first parameter is the only one: `cta`",
    "ClusterCta": "the first parameter is the only one: `cta`",
    "Ring": "a ring is `cta.ring(stages=4, tiles=(desc,))`",
    "StoreRing": "a store ring is `cta.store_ring(desc, stages=2)`",
}
_NAMED: Final = 8  # of an object's names, where it has no more of them


def site_of(problem: Exception) -> Site | None:
    """The user's line, when Python refused a call of ours there (too few arguments, no such method); None for the user's own bugs."""
    # Our own `__getattr__` speaks for Python.
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.name != "__getattr__"]
    words = "".join(c if c.isalnum() or c == "_" else " " for c in str(problem)).split()
    if in_package(frames[-1].filename) or (_HANDLES | _TILES | _FUNCTIONS).isdisjoint(words):
        return None
    return Site(frames[-1].filename, frames[-1].lineno or 0, frames[-1].name)


def signature_of(problem: TypeError | AttributeError) -> str:
    """The signature of what was called wrongly, "Ring.produce(leader, /)"; empty where it was no call, or of a constructor."""
    called = _called(problem)
    cls, _, name = called.rpartition(".")
    fn = getattr(_class(cls), name, None) if cls else getattr(bulk, name, None) if name in _FUNCTIONS else None
    if name == "__init__" or not callable(fn):
        return ""
    signature = inspect.signature(fn)
    given = [_bare(p) for p in signature.parameters.values() if p.name != "self"]
    return f"{called}{signature.replace(parameters=given, return_annotation=inspect.Signature.empty)}"


def instead(problem: TypeError | AttributeError) -> str:
    """What to write in place of a call that Python refused."""
    words, called = str(problem), _called(problem)
    cls, _, name = called.rpartition(".")
    if isinstance(problem, AttributeError):
        return _attribute(problem)
    if RecordedArray.__name__ in words:
        return "arrays are read and written by copies, a part is a view made before the launch; a number out of one is " + (
            "`cta.load_index(array, i, below=n)`"
        )
    if any(tile in words for tile in _TILE_CLASSES) and not called:
        return "elements are computed by a map, `cta.map(lambda v: v * 2, tile, out=tile)`, and stored by `cta.store(out, tile, at)`"
    if "Dim3" in words:
        return "it has three parts: `cta.block_idx.x`, `.y` and `.z`"
    if name == "__init__" and cls in _FACTORIES:
        return _FACTORIES[cls]
    return _help(cls, name)


def _called(problem: TypeError | AttributeError) -> str:
    """The function that a TypeError is of: "TmaDescriptor.g2s" of "TmaDescriptor.g2s() missing 2 required ..."."""
    before, brackets, _ = str(problem).partition("()")
    return before if isinstance(problem, TypeError) and brackets and " " not in before else ""


def _class(name: str) -> type | None:
    """A class of ours, the public one of that name before those in the rooms, some of which are built on this one."""
    public: Any = sys.modules["oxidecopy"]
    if name in public.__all__:
        named: type = getattr(public, name)
        return named
    rooms = [room for of, room in list(sys.modules.items()) if of.startswith("oxidecopy.")]
    return next((cls for room in rooms if isinstance(cls := vars(room).get(name), type)), None)


def _bare(parameter: inspect.Parameter) -> inspect.Parameter:
    """Without its annotation, and with `...` for a default that is an object."""
    default = parameter.default
    plain = default is inspect.Parameter.empty or default is None or isinstance(default, bool | int | str)
    return parameter.replace(annotation=inspect.Parameter.empty, default=default if plain else _Something())


@final
class _Something:
    """A default that is not said."""

    def __repr__(self) -> str:
        return "..."


def _attribute(problem: AttributeError) -> str:
    """What an object has in place of what it has not."""
    of, name = problem.obj, problem.name or ""
    known = _OF_CTA if isinstance(of, level1.Cta) else _OF_MAPS if isinstance(of, MapHandle) else {}
    if name in known:
        return known[name]
    if isinstance(of, tuple):
        return "name each tile of the stage: `as (tile,)`"
    names = [n for n in dir(of) if n[0] != "_"]
    near = difflib.get_close_matches(name, names, 1)
    if near:
        return f"did you mean `{near[0]}`?"
    if names and len(names) <= _NAMED and in_package(str(getattr(sys.modules.get(type(of).__module__), "__file__", ""))):
        return f"it has {', '.join(f'`{n}`' for n in names)}"
    return _help(type(of).__name__, "")


def _help(cls: str, name: str) -> str:
    """Where the signature is explained: by the class itself, where it is public."""
    public: Any = sys.modules["oxidecopy"]
    if not cls and name in _FUNCTIONS:
        of = name
    else:
        shown = cls if cls in public.__all__ else "Cta"
        of = f"{shown}.{name}" if name != "__init__" and hasattr(getattr(public, shown), name) else shown
    return f"compare with the signature: help(ox.{of}), or your editor"
