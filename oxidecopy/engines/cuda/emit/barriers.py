"""Statements that synchronise: syncs, fences, bulk groups, barriers, and tokens whose phase cannot be told."""

from __future__ import annotations

from typing import Final

from oxidecopy.engines.cuda.emit.carried import Carried, stamp
from oxidecopy.engines.cuda.emit.context import Context
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Add, Const, Expr, Mod, mod
from oxidecopy.isa.limits import WARP

# A token of a branch that the verified launch does not take has no phase.
_NEVER: Final = "__trap();  // the launch that was verified does not come here"


def synchronisation(ctx: Context, op: ops.Instr) -> list[str]:  # noqa: C901 - one case per op
    ptx, exprs = ctx.ptx, ctx.exprs
    match op:
        case ops.BarSync(number=number, threads=threads):
            if number == 0 and threads == ctx.program.threads:
                return ["__syncthreads();"]
            return [f"{ptx.use('bar_sync')}({number}, {-(-threads // WARP) * WARP});"]
        case ops.ClusterSync():
            return [f"{ptx.use(name)}();" for name in ("barrier_cluster_arrive_release", "barrier_cluster_wait_acquire")]
        case ops.FenceProxyAsync():
            return [f"{ptx.use('fence_proxy_async_shared_cta')}();"]
        case ops.FenceMbarrierInit():
            return [f"{ptx.use('fence_mbarrier_init_release_cluster')}();"]
        case ops.CommitGroup():
            return [f"{ptx.use('cp_async_bulk_commit_group')}();"]
        case ops.WaitGroup(pending=n):
            return [f"{ptx.use('cp_async_bulk_wait_group')}<{n}>();"]
        case ops.WaitGroupRead(pending=n):
            return [f"{ptx.use('cp_async_bulk_wait_group_read')}<{n}>();"]
        case ops.MbarrierWait(bar=bar, tokens=tokens):
            if any(t not in ctx.phases and t not in ctx.carried for t in tokens):
                return [_NEVER]
            parities = dict.fromkeys(_parity(ctx, ctx.phases[t]) for t in tokens if t in ctx.phases)
            waits = [f"{ptx.wait()}({ctx.barrier(bar)}, {parity});" for parity in parities]
            return [*waits, *(_wait_token(ctx, bar, t) for t in tokens if t in ctx.carried)]
        case ops.MbarrierWaitPhase(bar=bar, phase=phase):
            most = exprs.span(phase)
            if most.hi < 0:
                return []
            low, rest = (-phase.b.value, phase.a) if isinstance(phase, Add) and isinstance(phase.b, Const) else (0, phase)
            guard = f"if ({exprs.write(rest).at(7)} >= {low}) " if most.lo < 0 else ""
            return [f"{guard}{ptx.wait()}({ctx.barrier(bar)}, {_parity(ctx, phase)});"]
        case ops.MbarrierWaitParity(bar=bar, parity=parity):
            return [f"{ptx.wait()}({ctx.barrier(bar)}, {_parity(ctx, parity)});"]
        case ops.MbarrierTestToken(form=form, bar=bar, token=token, pred=pred):
            ctx.answers.add(pred)
            if token in ctx.carried:
                return [f"answer{pred} = {_test_token(ctx, bar, token)};"]
            named = ctx.phases.get(token)
            return [_NEVER if named is None else _test(ctx, form, bar, _parity(ctx, named), pred)]
        case ops.MbarrierTestParity(form=form, bar=bar, parity=parity, pred=pred):
            return [_test(ctx, form, bar, _parity(ctx, parity), pred)]
        case ops.MbarrierArrive(token=token) | ops.MbarrierArriveDrop(token=token) if token in ctx.carried:
            return _arrive_for_token(ctx, op, token)
        case ops.MbarrierArriveExpectTx(token=token) if token in ctx.carried:
            return _arrive_for_token(ctx, op, token)
        case _:
            return [_barrier(ctx, op)]


# ---- tokens whose phase cannot be told
def _stamp(ctx: Context) -> str:
    """The counters of the loops around, plus 1."""
    made = ctx.exprs.write(stamp(ctx.exprs, ctx.loops))
    return f"(u64)({made.text})" if made.text != "1" else "1"


def _arrive_for_token(ctx: Context, op: ops.MbarrierArrive | ops.MbarrierArriveDrop | ops.MbarrierArriveExpectTx, token: int) -> list[str]:
    carried, name = ctx.carried[token], ctx.token_names[token]
    bytes_of = f", {op.nbytes}" if isinstance(op, ops.MbarrierArriveExpectTx) else ""
    kind = {ops.MbarrierArrive: "", ops.MbarrierArriveDrop: "_drop", ops.MbarrierArriveExpectTx: "_expect_tx"}[type(op)]
    call = f"{ctx.ptx.state(f'mbarrier_arrive{kind}_state')}({ctx.barrier(op.bar)}{bytes_of})"
    if carried.offset < 0:
        return [f"{name} = {call};", f"{name}_of = {_stamp(ctx)};"]
    _share_tokens(ctx)
    one = f"if (thread == {carried.first}) " if len(ctx.threads) > 1 else ""
    put = f"put_token({_history(ctx, op.bar, carried)}, {carried.entries}, {_stamp(ctx)}, {name}_state);"
    return [f"const u64 {name}_state = {call};", f"{one}{put}"]


def _wait_token(ctx: Context, bar: ops.BarrierRef, token: int) -> str:
    carried, at = ctx.carried[token], ctx.barrier(bar)
    if carried.offset < 0:
        return f"{ctx.ptx.wait_state()}({at}, {ctx.token_names[token]});"
    _share_tokens(ctx)
    return f"wait_token({at}, {_history(ctx, bar, carried)}, {carried.entries}, {_stamp(ctx)});"


def _test_token(ctx: Context, bar: ops.BarrierRef, token: int) -> str:
    carried, at, name = ctx.carried[token], ctx.barrier(bar), ctx.token_names[token]
    if carried.offset < 0:
        return f"{name}_of == {_stamp(ctx)} && {ctx.ptx.state('mbarrier_try_wait')}({at}, {name})"
    _share_tokens(ctx)
    return f"test_token({at}, {_history(ctx, bar, carried)}, {carried.entries}, {_stamp(ctx)})"


def _history(ctx: Context, bar: ops.BarrierRef, carried: Carried) -> str:
    """Where a token of this barrier is, as a shared address."""
    element = "" if carried.stages == 1 else f" + {ctx.exprs.write(bar.index).at(8)} * {carried.step}"
    return f"smem + {carried.offset}{element}"


def _share_tokens(ctx: Context) -> None:
    ctx.helpers.add("tokens")
    for name in ("mbarrier_try_wait", "atom_add_shared", "ld_acquire_shared", "st_shared", "st_release_shared"):
        ctx.ptx.state(name)


def _barrier(ctx: Context, op: ops.Instr) -> str:  # noqa: C901 - one case per op
    use = ctx.ptx.use
    match op:
        case ops.MbarrierInit(bar=bar, count=count):
            return f"{use('mbarrier_init')}({ctx.barrier(bar)}, {count});"
        case ops.MbarrierInval(bar=bar):
            return f"{use('mbarrier_inval')}({ctx.barrier(bar)});"
        case ops.MbarrierArrive(bar=bar):
            return f"{use('mbarrier_arrive')}({ctx.barrier(bar)});"
        case ops.MbarrierArriveDrop(bar=bar):
            return f"{use('mbarrier_arrive_drop')}({ctx.barrier(bar)});"
        case ops.MbarrierArriveExpectTx(bar=bar, nbytes=nbytes):
            return f"{use('mbarrier_arrive_expect_tx')}({ctx.barrier(bar)}, {nbytes});"
        case ops.MbarrierExpectTx(bar=bar, nbytes=nbytes):
            return f"{use('mbarrier_expect_tx')}({ctx.barrier(bar)}, {nbytes});"
        case ops.MbarrierCompleteTx(bar=bar, nbytes=nbytes):
            return f"{use('mbarrier_complete_tx')}({ctx.barrier(bar)}, {nbytes});"
        case ops.MbarrierArriveRemote(bar=bar, rank=rank):
            return f"{use('mbarrier_arrive_remote')}({_peer(ctx, bar, rank)});"
        case ops.MbarrierArriveExpectTxRemote(bar=bar, nbytes=nbytes, rank=rank):
            return f"{use('mbarrier_arrive_expect_tx_remote')}({_peer(ctx, bar, rank)}, {nbytes});"
        case _:
            raise TypeError(f"{op.mnemonic} has no C++ yet")  # a bug of ours: every op has a case


def _peer(ctx: Context, bar: ops.BarrierRef, rank: Expr) -> str:
    return f"{ctx.ptx.use('mapa')}({ctx.barrier(bar)}, {ctx.exprs.narrow(rank)})"


def _parity(ctx: Context, phase: Expr) -> str:
    return ctx.exprs.text(mod(phase, Const(2)) if not isinstance(phase, Mod) or phase.b != Const(2) else phase)


def _test(ctx: Context, form: str, bar: ops.BarrierRef, parity: str, pred: int) -> str:
    ctx.answers.add(pred)
    return f"answer{pred} = {ctx.ptx.test(form)}({ctx.barrier(bar)}, {parity});"
