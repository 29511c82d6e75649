"""Random well-formed pipelines, recorded through the public handles, with numpy's answer.

A pipeline is one or two scenes. Every scene has barriers, tiles and arrays of its own, so scenes need nothing of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any, Final, Protocol

from oxidecopy.errors import Site
from oxidecopy.fuzz.bulk_scenes import Gathered, PassedOn, Runs, Spread
from oxidecopy.fuzz.case import Case
from oxidecopy.fuzz.cluster_scenes import ClusterRing, Gate, SharedLoad
from oxidecopy.fuzz.drafts import Draft, Handles
from oxidecopy.fuzz.im2col_scenes import Im2col, Pixels, Sliced
from oxidecopy.fuzz.index_scenes import Indexed, Mapped, Rows, Tables
from oxidecopy.fuzz.reshape_scenes import Turned
from oxidecopy.fuzz.ring_scenes import MulticastRing, TileRing, drawn_roles
from oxidecopy.fuzz.scenes import Handoff, InPlace, Nested, Prefetch, Produce, Ring, Rounds
from oxidecopy.program.program import Program, Step
from oxidecopy.tiles.cta import ClusterCta, Cta
from oxidecopy.typed.recorder import Recorder
from oxidecopy.typed.recording import record


class Scene(Protocol):
    """Draws its freedoms, and gives what records it."""

    __name__: str

    def __call__(self, d: Draft, /) -> Callable[[Any, Handles], None]: ...


ALONE: Final[tuple[Scene, ...]] = (
    *(Rounds, Rounds, Ring, Ring, Prefetch, Produce, Produce, Handoff, Nested),
    *(InPlace, InPlace, Runs, Indexed, Tables, Mapped, Turned, Im2col, Pixels, Sliced),
)
TOGETHER: Final[tuple[Scene, ...]] = (SharedLoad, ClusterRing, Gate, PassedOn, Gathered, Spread)
IN_ROLES: Final[dict[bool, Scene]] = {False: TileRing, True: MulticastRing}  # by whether there is a cluster; these stand alone
NEWER: Final[Scene] = Rows  # than the GPUs that programs are compared on
TWO_ROLES: Final = (Ring, Handoff, ClusterRing)  # need more than one warp
WHOLE_WARPS: Final = (Ring, ClusterRing)  # have syncs of their own: named barriers count whole warps
_EDITS: Final = "maps that the device replaces have programs and twins of their own in tests/verify/test_maps.py"
_PRODUCTS: Final = "sums on tensor cores agree within a bound only; conformance has every tile, type and epilogue with exact sums"
# Ops that no scene has, by mnemonic, and why.
NOT_GENERATED: Final[dict[str, str]] = {
    "tensormap.copy": _EDITS,
    "tensormap.replace": "fields one by one are refused by the verifier",
    "tensormap.replace.array": _EDITS,
    "tensormap.cp_fenceproxy": _EDITS,
    "fence.proxy.tensormap.acquire": _EDITS,
    **dict.fromkeys(("contract", "contract.drain", "mma.zero", "mma.step", "mma.out"), _PRODUCTS),
}
CLUSTERS: Final = ((2, 1, 1), (2, 1, 1), (1, 2, 1), (4, 1, 1), (2, 2, 1), (1, 1, 2), (3, 1, 1))
_FILE: Final = "op"
THREADS: Final = (1, 2, 32, 33, 64, 64, 96, 96, 128, 100)


def pipeline(seed: int) -> Case:
    """The pipeline of a seed."""
    rng = Random(seed)
    cluster = rng.choice(CLUSTERS) if rng.random() < 0.3 else (1, 1, 1)
    x, y, z = (c * rng.choice((1, 1, 2)) for c in cluster)
    draft = Draft(rng, rng.choice(THREADS), cluster, (x, y, z))
    chosen = _scenes(draft)
    scenes = [kind(draft) for kind in chosen]
    case = recorded(draft, scenes, between=rng.random() < 0.5)
    names = tuple(kind.__name__ for kind in chosen)
    return replace(case, label=f"seed {seed} ({', '.join(names)})", scenes=names)


def recorded(draft: Draft, scenes: Sequence[Callable[[Any, Handles], None]], *, between: bool = False) -> Case:
    """The draft's pipeline of these scenes, with numpy's answer; `between` puts a sync between two."""

    def body(cta: Any, **handles: Any) -> None:  # Any: the handles that `record` makes for these arguments
        for i, scene in enumerate(scenes):
            if i and between:
                cta.sync()
            scene(cta, handles)

    def make_cta(recorder: Recorder) -> Cta:
        return (Cta if draft.cluster == (1, 1, 1) else ClusterCta)(recorder, draft.roles)

    program = numbered(record(body, threads=draft.threads, cluster=draft.cluster, arguments=draft.arguments, cta=make_cta))
    expected = {name: g.data.copy() for name, g in draft.memory.items()}
    for effect in draft.effects:
        effect(expected)
    return Case(
        program=program,
        grid=draft.grid,
        memory=draft.memory,
        maps=draft.maps,
        arrays=draft.arrays,
        idx=draft.idx,
        scalars=draft.scalars,
        expected={name: data for name, data in expected.items() if name not in draft.unknown},
        apart=True,
        sm=draft.sm,
    )


def numbered(program: Program) -> Program:
    """The program with its ops' places in it for call sites, which are the generator's and tell nothing."""
    line = count(1)

    def steps(of: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple([Step(step.op, Site(_FILE, next(line)), steps(step.body)) for step in of])

    tiles = tuple([replace(tile, site=None) for tile in program.tiles])
    barriers = tuple([replace(barrier, site=None) for barrier in program.barriers])
    return replace(program, steps=steps(program.steps), tiles=tiles, barriers=barriers, site=Site(_FILE, 0))


def _scenes(draft: Draft) -> list[Scene]:
    """Which scenes a pipeline has; settles roles, threads and compute capability."""
    rng, clustered = draft.rng, draft.size > 1
    what = rng.random()
    if what < 0.18:
        draft.roles = drawn_roles(rng, cluster=clustered)
        draft.threads = draft.roles.threads
        return [IN_ROLES[clustered]]
    if what < 0.20 and not clustered:
        draft.sm = 100
        return [NEWER]
    kinds = ALONE if not clustered else (TOGETHER if rng.random() < 0.7 else TOGETHER + ALONE)
    usable = [kind for kind in kinds if draft.threads > 32 or kind not in TWO_ROLES]
    chosen = [rng.choice(usable) for _ in range(rng.choice((1, 1, 1, 2)))]
    if any(kind in WHOLE_WARPS for kind in chosen):
        draft.threads = -(-draft.threads // 32) * 32
    return chosen
