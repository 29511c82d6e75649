"""What the library's calls mean beyond their signatures: one feature per module, one row per function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from oxidecopy.mypy_plugin import _names
from oxidecopy.mypy_plugin._features import copies, leaks, recorded, symbolic, tokens

if TYPE_CHECKING:
    from oxidecopy.mypy_plugin._calls import Call
    from oxidecopy.mypy_plugin._domain import State
    from oxidecopy.mypy_plugin._flow import Flow

Act: TypeAlias = "Callable[[Flow, Call, State], None]"

CALLS: Final[dict[str, Sequence[Act]]] = {
    f"{_names.BARRIER}.arrive": (tokens.arrived, leaks.token_made),
    f"{_names.BARRIER}.arrive_drop": (tokens.arrived, leaks.token_made),
    f"{_names.BARRIER}.arrive_expect_tx": (tokens.arrived, leaks.token_made, copies.announced),
    f"{_names.BARRIER}.expect_tx": (copies.announced,),
    f"{_names.BARRIER}.complete_tx": (copies.completed,),
    f"{_names.BARRIER}.wait": (tokens.waited, copies.waited),
    f"{_names.BARRIER}.try_wait": (tokens.waited, recorded.tokens_stay, leaks.token_asked),
    f"{_names.BARRIER}.test_wait": (tokens.waited, recorded.tokens_stay, leaks.token_asked),
    f"{_names.DESCRIPTOR}.g2s": (recorded.copies_stay, leaks.token_lent, copies.issued),
    f"{_names.DESCRIPTOR}.g2s_multicast": (recorded.copies_stay, leaks.token_lent, copies.issued_to_many),
    f"{_names.DESCRIPTOR}.gather4": (recorded.copies_stay, leaks.token_lent, copies.issued),
    f"{_names.IM2COL}.g2s": (recorded.copies_stay, leaks.token_lent, copies.issued),
    f"{_names.IM2COL}.g2s_multicast": (recorded.copies_stay, leaks.token_lent, copies.issued_to_many),
    f"{_names.BULK}.bulk_g2s": (recorded.copies_stay, leaks.token_lent, copies.issued),
    f"{_names.BULK}.bulk_g2s_multicast": (recorded.copies_stay, leaks.token_lent, copies.issued_to_many),
    f"{_names.BULK}.bulk_s2s": (copies.issued_to_peers,),
    f"{_names.BULK}.bulk_reduce_s2s": (copies.issued_to_peers,),
    **dict.fromkeys((f"{bar}.{name}" for bar in (_names.BARRIER, _names.BARRIERS) for name in ("init", "init_by")), (leaks.barrier_made,)),
    **dict.fromkeys(
        (f"{_names.BARRIER}.{name}" for name in ("wait_phase", "wait_parity", "try_wait_parity", "test_wait_parity")),
        (leaks.waited_by_number,),
    ),
    f"{_names.LEADER}.commit_group": (leaks.group_closed,),
    f"{_names.LEADER}.wait_group": (leaks.groups_waited,),
    f"{_names.LEADER}.wait_group_read": (leaks.groups_waited,),
    _names.SHARED: (copies.tile_made,),
    f"{_names.LAUNCHABLE}.__call__": (symbolic.launch,),
    f"{_names.LAUNCHABLE}.bind": (symbolic.launch,),
    "builtins.min": (symbolic.ordered,),
    "builtins.max": (symbolic.ordered,),
    "builtins.sorted": (symbolic.ordered,),
    "builtins.bool": (symbolic.asked,),
    "builtins.any": (symbolic.asked,),
    "builtins.all": (symbolic.asked,),
}

NO_ACTS: Final[Sequence[Act]] = ()


def calls_of(fullname: str) -> Sequence[Act]:
    """What happens at calls of this function."""
    return CALLS.get(fullname, NO_ACTS)
