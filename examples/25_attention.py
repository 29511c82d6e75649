"""Attention's feed: each K and V tile is loaded once, and used by two groups that have queries of their own.

FlashAttention on a Hopper GPU gives each warpgroup a tile of queries, which stays, and sends all keys and values past them. K and V have a
ring each: the scores need K alone, and its stage is free while V is used. The attention is causal: a group needs no keys behind its own
queries, yet takes their stages, as the other group does need them. Products are element by element here, as in lesson 18. Three twins are
broken on purpose: one scratch tile for two groups, keys that are all loaded before the first values, and queries nobody waits for.

    python examples/25_attention.py --input x.npy --output y.npy       # any 3-D float32 array of three matrices: queries, keys, values
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

GROUPS, STAGES = 2, 2
ROWS, DEPTH = 64, 32  # of a tile; heads of 32 columns lie side by side
Tiles = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]
Array = npt.NDArray[np.float32]


# ---- the rings
# A CTA has two tiles of queries of one head, one below the other. Group g needs key blocks 0 to `mine`, the producer loads as many as group
# 1 needs. What decides between right and wrong: whether K and V are loaded in turns, as they are used (`turns`), whose queries a group
# waits for (`queries`), and whose scratch tile it puts its scores into (`scratch`).
def body(
    cta: ox.Cta,
    q: Tiles,
    k: Tiles,
    v: Tiles,
    dst: Tiles,
    *,
    turns: bool = True,
    queries: tuple[int, int] = (0, 1),
    scratch: tuple[int, int] = (0, 1),
) -> None:
    keys, values = cta.ring(stages=STAGES, tiles=(k,)), cta.ring(stages=STAGES, tiles=(v,))
    loaded = cta.barriers(GROUPS, name="loaded").init(1)
    query, scores, sums, out = (cta.shared(q, stages=GROUPS, name=name) for name in ("queries", "scores", "sums", "out"))
    first, column = cta.block_idx.x * GROUPS, cta.block_idx.y * DEPTH
    steps = ox.minimum(first + GROUPS, (k.shape[0] + ROWS - 1) // ROWS)

    with cta.producer() as leader:
        for g in range(GROUPS):
            token = loaded[g].arrive_expect_tx(leader, query[g])
            q.g2s(leader, query[g], ((first + g) * ROWS, column), token)
        if turns:
            for j in cta.range(steps):
                with keys.produce(leader) as (key,):
                    key.load(k, (j * ROWS, column))
                with values.produce(leader) as (value,):
                    value.load(v, (j * ROWS, column))
        else:
            for j in cta.range(steps):
                with keys.produce(leader) as (key,):
                    key.load(k, (j * ROWS, column))
            for j in cta.range(steps):
                with values.produce(leader) as (value,):
                    value.load(v, (j * ROWS, column))

    for g in range(GROUPS):
        mine, score = first + g, scores[scratch[g]]
        with cta.consumers(g) as group:
            loaded[queries[g]].wait_phase(0)
            group.fill(sums[g], 0)
            group.fill(out[g], 0)
            group.sync()
            for j in cta.range(steps):
                with keys.consume(group) as (key,), cta.when(j <= mine):
                    group.map(lambda a, b: a * b, query[g], key, out=score)
                with values.consume(group) as (value,), cta.when(j <= mine):
                    group.map(lambda o, s, b: o + s * b, out[g], score, value, out=out[g])
                    group.map(lambda t, s: t + s, sums[g], score, out=sums[g])
            group.map(lambda o, t: o / t, out[g], sums[g], out=out[g])
            group.store(dst, out[g], (mine * ROWS, column))


@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
def attention(cta: ox.Cta, q: Tiles, k: Tiles, v: Tiles, dst: Tiles) -> None:
    body(cta, q, k, v, dst)


@attention.recipe
def attention_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return recipe(dev, x, attention)


def recipe(dev: ox.Device, x: Array | None, pipeline: ox.Pipeline[Tiles, Tiles, Tiles, Tiles]) -> ox.Recipe:
    if x is None:
        x = np.random.default_rng(25).uniform(0.5, 1.5, (3, 300, 64)).astype(np.float32)
    array: ox.GlobalArray[ox.f32, ox.D3] = dev.array(x, ox.f32, pad=True)
    q, k, v = (tiles(array.select(0, i)) for i in range(3))
    rows, columns = x.shape[1:]
    result = dev.empty((rows, columns), ox.f32, pad=True)
    launch = pipeline[-(-rows // (GROUPS * ROWS)), -(-columns // DEPTH)].bind(q, k, v, tiles(result))
    return ox.Recipe(launch=launch, outputs={"out": result}, expected={"out": attended(x)})


def tiles(array: ox.GlobalArray[ox.f32, ox.D2]) -> Tiles:
    return ox.TmaDescriptor.tiled(array, box=(ROWS, DEPTH), swizzle=ox.Swizzle128B)


def attended(x: Array) -> Array:
    rows = x.shape[1]
    q, k, v = np.pad(x, ((0, 0), (0, -rows % ROWS), (0, 0))).reshape(3, -1, ROWS, x.shape[2])
    out, sums = np.zeros_like(q), np.zeros_like(q)
    for j in range(len(k)):  # blocks of queries from j on see the keys of block j
        scores = q[j:] * k[j]
        out[j:] += scores * v[j]
        sums[j:] += scores
    with np.errstate(divide="ignore", invalid="ignore"):  # the rows behind the last one
        return np.divide(out, sums).reshape(-1, x.shape[2])[:rows]


# ---- broken on purpose: one scratch tile
# The groups do not wait for each other, so one puts its scores over those that the other one is about to use.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
def broken_scratch(cta: ox.Cta, q: Tiles, k: Tiles, v: Tiles, dst: Tiles) -> None:
    body(cta, q, k, v, dst, scratch=(0, 0))  # the edit: not `(0, 1)`


@broken_scratch.recipe(refused="OX3045")
def broken_scratch_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_scratch)


# ---- broken on purpose: all keys first
# With more key blocks than stages, the producer waits for a stage of K, and the consumers, which have it, wait for V.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
def broken_turns(cta: ox.Cta, q: Tiles, k: Tiles, v: Tiles, dst: Tiles) -> None:
    body(cta, q, k, v, dst, turns=False)  # the edit: not True


@broken_turns.recipe(refused="OX3030")
def broken_turns_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_turns)


# ---- broken on purpose: somebody else's queries
# Both groups wait for the queries of group 0. Those of group 1 come at about the same time, mostly.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
def broken_queries(cta: ox.Cta, q: Tiles, k: Tiles, v: Tiles, dst: Tiles) -> None:
    body(cta, q, k, v, dst, queries=(0, 0))  # the edit: not `(0, 1)`


@broken_queries.recipe(refused="OX3040")
def broken_queries_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_queries)


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, attention, broken_scratch, broken_turns, broken_queries, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
