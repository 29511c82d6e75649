"""Random well-formed pipelines, recorded through the public handles, with numpy's answer.

A pipeline is one or two scenes. Every scene has barriers, tiles and arrays of its own, so scenes need nothing of each other.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from oxidecopy.typed.recording import record
from tests.helpers.agreement import Case
from tests.helpers.cluster_scenes import ClusterRing, Gate, SharedLoad
from tests.helpers.drafts import Draft
from tests.helpers.scenes import Handoff, Nested, Prefetch, Produce, Ring, Rounds

ALONE: Final = (Rounds, Rounds, Ring, Ring, Prefetch, Produce, Produce, Handoff, Nested)
TOGETHER: Final = (SharedLoad, ClusterRing, Gate)
TWO_ROLES: Final = (Ring, Handoff, ClusterRing)  # need more than one warp
WHOLE_WARPS: Final = (Ring, ClusterRing)  # have syncs of their own: named barriers count whole warps
CLUSTERS: Final = ((2, 1, 1), (2, 1, 1), (1, 2, 1), (4, 1, 1), (2, 2, 1), (1, 1, 2))
THREADS: Final = (1, 2, 32, 33, 64, 64, 96, 96, 128, 100)


def pipeline(seed: int) -> Case:
    """The pipeline of a seed."""
    rng = Random(seed)
    cluster = rng.choice(CLUSTERS) if rng.random() < 0.3 else (1, 1, 1)
    threads = rng.choice(THREADS)
    kinds = ALONE if cluster == (1, 1, 1) else (TOGETHER if rng.random() < 0.7 else TOGETHER + ALONE)
    usable = [kind for kind in kinds if threads > 32 or kind not in TWO_ROLES]
    chosen = [rng.choice(usable) for _ in range(rng.choice((1, 1, 1, 2)))]
    if any(kind in WHOLE_WARPS for kind in chosen):
        threads = -(-threads // 32) * 32
    x, y, z = (c * rng.choice((1, 1, 2)) for c in cluster)
    draft = Draft(rng, threads, cluster, (x, y, z))
    scenes = [kind(draft) for kind in chosen]
    between = rng.random() < 0.5

    def body(cta: Any, **handles: Any) -> None:  # Any: the handles that `record` makes for these arguments
        for i, scene in enumerate(scenes):
            if i and between:
                cta.sync()
            scene(cta, handles)

    program = record(body, threads=threads, cluster=cluster, arguments=draft.arguments)
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
        expected=expected,
        label=f"seed {seed} ({', '.join(kind.__name__ for kind in chosen)})",
    )
