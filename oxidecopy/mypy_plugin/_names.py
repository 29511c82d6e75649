"""Our public classes and functions as mypy names them. A test resolves every one of them."""

from __future__ import annotations

from typing import Final

PACKAGE: Final = "oxidecopy"
PREFIX: Final = "oxidecopy."

OWNED: Final = "oxidecopy.typed.states.Owned"

BARRIER: Final = "oxidecopy.typed.barrier.ManagedBarrier"
BARRIERS: Final = "oxidecopy.typed.barrier_array.ManagedBarriers"
TOKEN: Final = "oxidecopy.typed.tokens.BarrierToken"
TX_TOKEN: Final = "oxidecopy.typed.tokens.TxToken"
TOKENS: Final = frozenset({TOKEN, TX_TOKEN})
BARRIER_CLASSES: Final = frozenset({BARRIER, BARRIERS})
UNINIT: Final = "oxidecopy.typed.states.Uninit"
READY: Final = "oxidecopy.typed.states.Ready"
TILES: Final = "oxidecopy.tiles."
PIPELINE: Final = "oxidecopy.host.pipeline.pipeline"

LEADER: Final = "oxidecopy.typed.leader.Leader"
CLUSTER_LEADER: Final = "oxidecopy.typed.leader.ClusterLeader"
BASE_GROUP: Final = "oxidecopy.typed.leader.Group"
BASE_CLUSTER_GROUP: Final = "oxidecopy.typed.leader.ClusterGroup"
GROUP: Final = "oxidecopy.tiles.group.Group"
CLUSTER_GROUP: Final = "oxidecopy.tiles.group.ClusterGroup"
SLOT: Final = "oxidecopy.tiles.stage.Slot"
LANDED: Final = "oxidecopy.tiles.stage.Landed"
BLOCK_TILE: Final = "oxidecopy.tiles.stage.BlockTile"
STAGE_AT: Final = "oxidecopy.tiles.work.StageAt"
TILE: Final = "oxidecopy.typed.smem.SharedArray"
DRAFT: Final = "oxidecopy.typed.tensormap.TensorMapDraft"
DESCRIPTOR: Final = "oxidecopy.typed.descriptor.TmaDescriptor"
IM2COL: Final = "oxidecopy.typed.im2col.Im2colDescriptor"
BULK: Final = "oxidecopy.typed.bulk"
SHARED: Final = "oxidecopy.typed.cta.Cta.shared"

# What a value of these classes is called in messages. All of them are tracked: moved, or ended with their block.
NOUNS: Final[dict[str, str]] = {
    BARRIER: "barrier",
    BARRIERS: "barriers",
    TOKEN: "token",
    TX_TOKEN: "token",
    LEADER: "leader",
    CLUSTER_LEADER: "leader",
    BASE_GROUP: "group",
    BASE_CLUSTER_GROUP: "group",
    GROUP: "group",
    CLUSTER_GROUP: "group",
    SLOT: "slot",
    LANDED: "tile",
    BLOCK_TILE: "tile",
    STAGE_AT: "stage",
    TILE: "tile",
    DRAFT: "map draft",
}

# Values that are only known on the device.
INDEX: Final = "oxidecopy.typed.symbolic.SymIdx"
PREDICATE: Final = "oxidecopy.typed.symbolic.Pred"
SCALAR: Final = "oxidecopy.typed.scalar.ScalarValue"
ELEMENT: Final = "oxidecopy.tiles.elem.Elem"
ELEMENTS_COMPARED: Final = "oxidecopy.tiles.elem.Truth"
SYMBOLIC: Final[dict[str, str]] = {
    INDEX: "integer",
    PREDICATE: "condition",
    SCALAR: "scalar",
    ELEMENT: "element",
    ELEMENTS_COMPARED: "comparison of elements",
}

LAUNCHABLE: Final = "oxidecopy.host.pipeline.Launchable"
# A function with one of these is looked at, though they are not tracked.
LOOKED_AT: Final = frozenset({*SYMBOLIC, LAUNCHABLE, DESCRIPTOR})
DTYPES: Final = "oxidecopy.typed.dtypes"

# Loops that the device runs: their body is recorded once. `cta.tiles` with an order may record none, and is left alone.
WHEN: Final = "oxidecopy.typed.cta.Cta.when"
RANGE: Final = "oxidecopy.typed.cta.Cta.range"
CTA_TILES: Final = "oxidecopy.tiles.cta.Cta.tiles"
RING_STAGES: Final = "oxidecopy.tiles.ring.Ring.stages"
RECORDED_LOOPS: Final[dict[str, str]] = {RANGE: "cta.range", CTA_TILES: "cta.tiles", RING_STAGES: "ring.stages"}
# Their targets end with each pass of the loop.
ENDING_LOOPS: Final = frozenset({RING_STAGES})

# Python's own calls that look at the elements of their arguments in order, or ask for truth or order.
PASS_ON: Final = frozenset(
    {"builtins.enumerate", "builtins.zip", "builtins.reversed", "builtins.iter", "builtins.list", "builtins.tuple", "builtins.sorted"}
)
COMPARING: Final[dict[str, str]] = {
    "builtins.min": "minimum",
    "builtins.max": "maximum",
    "builtins.sorted": "",
}
TRUTH: Final = frozenset({"builtins.bool", "builtins.bool.__new__", "builtins.any", "builtins.all"})

# Blocks whose body is there to raise.
RAISES: Final = frozenset({"_pytest.raises.RaisesExc", "_pytest.python_api.RaisesContext"})

# Modules of Python's containers; their methods look at no element.
CONTAINERS: Final = frozenset({"builtins", "collections", "queue", "typing"})

# Methods of dicts that show the same elements.
VIEWS: Final = frozenset(
    f"{owner}.{view}" for owner in ("builtins.dict", "typing.Mapping", "collections.OrderedDict") for view in ("values", "items")
)
# Methods of Python's containers: what puts a value in, and what makes earlier knowledge of the elements worthless.
ADDING: Final = frozenset({"append", "add", "appendleft", "insert", "setdefault", "put", "put_nowait"})
FORGETTING: Final = frozenset({"clear", "pop", "popleft", "popitem", "remove", "discard", "sort", "reverse", "extend", "update", "rotate"})
