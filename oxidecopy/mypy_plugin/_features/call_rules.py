"""Numbers in single calls: multicast masks and remote ranks against the declared cluster, and how much a barrier can count."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

from mypy.nodes import CallExpr, Decorator, Expression, FuncItem, MemberExpr, MypyFile, RefExpr, TupleExpr

from oxidecopy.mypy_plugin import _names
from oxidecopy.mypy_plugin._codes import TX
from oxidecopy.mypy_plugin._features.literals import Problem, View, named, positional, receiver
from oxidecopy.mypy_plugin._features.literals_walk import Walker

CLUSTER_MAX: Final = 16  # as in oxidecopy.isa.limits: no cluster is larger
TX_MAX: Final = (1 << 20) - 1
METHODS: Final = frozenset({"g2s_multicast", "arrive_remote", "arrive_expect_tx", "arrive_expect_tx_remote", "expect_tx", "complete_tx"})
_ANNOUNCING: Final = ("arrive_expect_tx", "arrive_expect_tx_remote", "expect_tx", "complete_tx")


def declared_cluster(tree: MypyFile, fn: FuncItem, view: View) -> int | None:
    """CTAs of the cluster that the decorator of `fn` declares; None when it is no pipeline, or the number is not a literal."""
    for call in _decorators(tree, fn):
        if isinstance(call.callee, RefExpr) and call.callee.fullname == _names.PIPELINE:
            given = named(call, "cluster")
            if given is None:
                return None
            parts = [view.integer(e) for e in (given.items if isinstance(given, TupleExpr) else (given,))]
            known = [n for n in parts if n is not None and n >= 1]
            return prod(known) if len(known) == len(parts) else None
    return None


def _decorators(tree: MypyFile, fn: FuncItem) -> list[CallExpr]:
    """The calls that decorate a function."""
    found: list[CallExpr] = []

    def look(node: Decorator) -> None:
        if node.func is fn:
            found.extend(d for d in node.original_decorators if isinstance(d, CallExpr))
        walker.deeper(node)

    walker = Walker({Decorator: look})
    walker.all(tree.defs)
    return found


def of_call(call: CallExpr, view: View, cluster: int | None) -> Iterator[Problem]:
    """What is wrong with the numbers of one call; `cluster` as `declared_cluster` gives it."""
    if not isinstance(call.callee, MemberExpr) or call.callee.name not in METHODS:
        return
    if receiver(call, view, "g2s_multicast", _names.DESCRIPTOR) is not None:
        yield from _mask(named(call, "cta_mask"), view, cluster)
    for method in ("arrive_remote", "arrive_expect_tx_remote"):
        if receiver(call, view, method, _names.BARRIER) is not None:
            given = positional(call)
            rank = named(call, "cta_rank") or (given[0] if method == "arrive_remote" and given else None)
            yield from _rank(rank, view, cluster)
    for method in _ANNOUNCING:
        if receiver(call, view, method, _names.BARRIER) is not None:
            yield from _bytes(call, view)


def _mask(e: Expression | None, view: View, cluster: int | None) -> Iterator[Problem]:
    mask = view.integer(e)
    size = cluster or CLUSTER_MAX
    if e is None or mask is None or 0 <= mask < 1 << size:
        return
    of = f"the declared cluster has {size} CTAs" if cluster else f"no cluster has more than {size} CTAs"
    shown = bin(mask) if mask >= 0 else str(mask)
    words = f"Multicast mask {shown} names CTAs that do not exist: {of}"
    yield Problem(node=e, code=TX, message=words, notes=(f"bits 0 to {size - 1} only: at most {bin((1 << size) - 1)}",))


def _rank(e: Expression | None, view: View, cluster: int | None) -> Iterator[Problem]:
    rank = view.integer(e)
    size = cluster or CLUSTER_MAX
    if e is None or rank is None or 0 <= rank < size:
        return
    of = f"the declared cluster has {size} CTAs" if cluster else f"no cluster has more than {size} CTAs"
    yield Problem(node=e, code=TX, message=f"Cluster rank {rank} does not exist: {of}", notes=(f"0 to {size - 1}",))


def _bytes(call: CallExpr, view: View) -> Iterator[Problem]:
    parts = [(e, view.announced(e)) for e in positional(call)[1:]]
    total = sum(n for _, n in parts if n is not None)
    low = next((e for e, n in parts if n is not None and n < 0), None)
    if low is not None:
        yield Problem(node=low, code=TX, message=f"A barrier cannot be told to expect {view.announced(low)} bytes")
    elif total > TX_MAX:
        words = f"A barrier cannot be told to expect {total} bytes in one phase: it counts to {TX_MAX}"
        yield Problem(node=call, code=TX, message=words, notes=("split the copies over several phases or barriers",))
