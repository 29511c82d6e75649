"""One C++ function per PTX instruction, named as PTX; those that a program uses are written into its source.

Shared addresses are 32 bits wide; maps are kernel parameters or lie in a table in global memory, and the copies take their generic address.
Coordinates come innermost first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from oxidecopy.isa.ops import CacheHint

_HEAD: Final = "__device__ __forceinline__"
_SIMPLE: Final[dict[str, tuple[str, str, str]]] = {  # name -> parameters, instruction, operands
    "mbarrier_init": ("u32 bar, u32 count", "mbarrier.init.shared::cta.b64 [%0], %1;", '"r"(bar), "r"(count)'),
    "mbarrier_inval": ("u32 bar", "mbarrier.inval.shared::cta.b64 [%0];", '"r"(bar)'),
    "mbarrier_arrive": ("u32 bar", "mbarrier.arrive.shared::cta.b64 _, [%0];", '"r"(bar)'),
    "mbarrier_arrive_drop": ("u32 bar", "mbarrier.arrive_drop.shared::cta.b64 _, [%0];", '"r"(bar)'),
    "mbarrier_arrive_expect_tx": (
        "u32 bar, u32 bytes",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;",
        '"r"(bar), "r"(bytes)',
    ),
    "mbarrier_expect_tx": ("u32 bar, u32 bytes", "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;", '"r"(bar), "r"(bytes)'),
    "mbarrier_complete_tx": ("u32 bar, u32 bytes", "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;", '"r"(bar), "r"(bytes)'),
    "mbarrier_arrive_remote": ("u32 bar", "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];", '"r"(bar)'),
    "mbarrier_arrive_expect_tx_remote": (
        "u32 bar, u32 bytes",
        "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;",
        '"r"(bar), "r"(bytes)',
    ),
    "cp_async_bulk_commit_group": ("", "cp.async.bulk.commit_group;", ""),
    "fence_proxy_async_shared_cta": ("", "fence.proxy.async.shared::cta;", ""),
    "fence_mbarrier_init_release_cluster": ("", "fence.mbarrier_init.release.cluster;", ""),
    "bar_sync": ("u32 number, u32 count", "bar.sync %0, %1;", '"r"(number), "r"(count)'),
    "barrier_cluster_arrive_release": ("", "barrier.cluster.arrive.release;", ""),
    "barrier_cluster_wait_acquire": ("", "barrier.cluster.wait.acquire;", ""),
}
_TEMPLATES: Final[dict[str, str]] = {
    "cp_async_bulk_wait_group": "cp.async.bulk.wait_group %0;",
    "cp_async_bulk_wait_group_read": "cp.async.bulk.wait_group.read %0;",
}
_REGISTERS: Final[dict[str, str]] = {
    "mapa": f"""{_HEAD} u32 mapa(u32 address, u32 rank) {{
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}}""",
    "tensormap_acquired": f"""{_HEAD} const TensorMap* tensormap_acquired(const TensorMap* map) {{
    asm volatile("fence.proxy.tensormap::generic.acquire.sys [%0], 128;" ::"l"(map) : "memory");
    return map;
}}""",
    "tensormap_copy": f"""{_HEAD} void tensormap_copy(u32 to, const TensorMap* map) {{
    const u64* words = reinterpret_cast<const u64*>(map);
    for (u32 i = 0; i < sizeof(TensorMap) / 8; ++i) asm volatile("st.shared.u64 [%0], %1;" ::"r"(to + 8 * i), "l"(words[i]) : "memory");
}}""",
    "tensormap_extent": f"""{_HEAD} u32 tensormap_extent(i64 elements) {{
    if (elements < 1) __trap();  // a map cannot be empty
    return (u32)elements;
}}""",
    "tensormap_cp_fenceproxy": f"""{_HEAD} void tensormap_cp_fenceproxy(TensorMap* to, u32 from) {{
    asm volatile(
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(
            __cvta_generic_to_global(to)),
        "r"(from)
        : "memory");
}}""",
    "fence_proxy_tensormap_acquire": f"""{_HEAD} void fence_proxy_tensormap_acquire(const TensorMap* map) {{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}}""",
    "block_number": f"""{_HEAD} u64 block_number() {{
    return blockIdx.x + (u64)gridDim.x * (blockIdx.y + (u64)gridDim.y * blockIdx.z);
}}""",
    "cluster_ctarank": f"""{_HEAD} u32 cluster_ctarank() {{
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}}""",
}
_WAIT: Final = f"""{_HEAD} void mbarrier_wait_parity(u32 bar, u32 parity) {{
#ifdef OXIDECOPY_BOUNDED_WAITS
    for (u32 tries = 0; !mbarrier_try_wait_parity(bar, parity); ++tries) {{
        if (tries == OXIDECOPY_WAIT_TRIES) __trap();
    }}
#else
    while (!mbarrier_try_wait_parity(bar, parity)) {{
    }}
#endif
}}"""
_STATES: Final[dict[str, str]] = {
    "mbarrier_arrive_state": f"""{_HEAD} u64 mbarrier_arrive_state(u32 bar) {{
    u64 state;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(bar) : "memory");
    return state;
}}""",
    "mbarrier_arrive_drop_state": f"""{_HEAD} u64 mbarrier_arrive_drop_state(u32 bar) {{
    u64 state;
    asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(bar) : "memory");
    return state;
}}""",
    "mbarrier_arrive_expect_tx_state": f"""{_HEAD} u64 mbarrier_arrive_expect_tx_state(u32 bar, u32 bytes) {{
    u64 state;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;" : "=l"(state) : "r"(bar), "r"(bytes) : "memory");
    return state;
}}""",
    "mbarrier_try_wait": f"""{_HEAD} bool mbarrier_try_wait(u32 bar, u64 state) {{
    u32 over;
    asm volatile(
        "{{\\n"
        ".reg .pred p;\\n"
        "mbarrier.try_waitSCOPE.shared::cta.b64 p, [%1], %2;\\n"
        "selp.u32 %0, 1, 0, p;\\n"
        "}}"
        : "=r"(over)
        : "r"(bar), "l"(state)
        : "memory");
    return over != 0;
}}""",
    "mbarrier_wait_state": f"""{_HEAD} void mbarrier_wait_state(u32 bar, u64 state) {{
#ifdef OXIDECOPY_BOUNDED_WAITS
    for (u32 tries = 0; !mbarrier_try_wait(bar, state); ++tries) {{
        if (tries == OXIDECOPY_WAIT_TRIES) __trap();
    }}
#else
    while (!mbarrier_try_wait(bar, state)) {{
    }}
#endif
}}""",
    "atom_add_shared": f"""{_HEAD} u32 atom_add_shared(u32 address, u32 value) {{
    u32 old;
    asm volatile("atom.acq_rel.cta.shared.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(address), "r"(value) : "memory");
    return old;
}}""",
    "ld_acquire_shared": f"""{_HEAD} u64 ld_acquire_shared(u32 address) {{
    u64 value;
    asm volatile("ld.acquire.cta.shared.u64 %0, [%1];" : "=l"(value) : "r"(address) : "memory");
    return value;
}}""",
    "st_shared": f"""{_HEAD} void st_shared(u32 address, u64 value) {{
    asm volatile("st.shared.u64 [%0], %1;" ::"r"(address), "l"(value) : "memory");
}}""",
    "st_release_shared": f"""{_HEAD} void st_release_shared(u32 address, u64 value) {{
    asm volatile("st.release.cta.shared.u64 [%0], %1;" ::"r"(address), "l"(value) : "memory");
}}""",
}
_WORDS: Final = {"bit_and": "and", "bit_or": "or", "bit_xor": "xor"}


@final
class Ptx:
    """The functions that a program has asked for; each `use` gives the text of the call's name."""

    def __init__(self, *, cluster: bool) -> None:
        self._cluster = cluster
        self._used: dict[str, str] = {}

    def text(self) -> str:
        """All that were asked for, in a namespace of their own; empty without any."""
        bodies = "\n\n".join(self._used.values())
        return f"namespace ptx {{\n\n{bodies}\n\n}}  // namespace ptx\n" if bodies else ""

    def use(self, name: str) -> str:
        """An instruction without variants."""
        if name not in self._used:
            if name in _SIMPLE:
                parameters, instruction, operands = _SIMPLE[name]
                self._used[name] = _function(name, parameters, instruction, operands)
            elif name in _TEMPLATES:
                self._used[name] = f"template <int N>\n{_function(name, '', _TEMPLATES[name], _N)}"
            else:
                self._used[name] = _REGISTERS[name]
        return f"ptx::{name}"

    def test(self, form: str) -> str:
        """`try_wait.parity` or `test_wait.parity`; of a cluster's barriers they must acquire what other CTAs released."""
        name = f"mbarrier_{form}_parity"
        scope = ".acquire.cluster" if self._cluster else ""
        self._used.setdefault(
            name,
            f"""{_HEAD} bool {name}(u32 bar, u32 parity) {{
    u32 over;
    asm volatile(
        "{{\\n"
        ".reg .pred p;\\n"
        "mbarrier.{form}.parity{scope}.shared::cta.b64 p, [%1], %2;\\n"
        "selp.u32 %0, 1, 0, p;\\n"
        "}}"
        : "=r"(over)
        : "r"(bar), "r"(parity)
        : "memory");
    return over != 0;
}}""",
        )
        return f"ptx::{name}"

    def wait(self) -> str:
        """try_wait.parity until it says yes."""
        self.test("try_wait")
        self._used.setdefault("mbarrier_wait_parity", _WAIT)
        return "ptx::mbarrier_wait_parity"

    def state(self, name: str) -> str:
        """What tokens as states need: arrivals that return the barrier's state, waits that name it, and words of shared memory."""
        scope = ".acquire.cluster" if self._cluster else ""
        self._used.setdefault(name, _STATES[name].replace("SCOPE", scope))
        return f"ptx::{name}"

    def wait_state(self) -> str:
        """try_wait of a state until it says yes."""
        self.state("mbarrier_try_wait")
        return self.state("mbarrier_wait_state")

    def load(self, rank: int, *, multicast: bool, offsets: int = 0, hint: bool = False, mode: str = "tile") -> str:
        """Global to shared. With `offsets`, im2col; with `hint`, a cache policy comes last."""
        name = f"cp_async_bulk_tensor_{rank}d_g2s" + _suffix(mode, hint) + ("_multicast" if multicast else "")
        kind = ".multicast::cluster" if multicast else ""
        places = 5 if mode == "tile::gather4" else rank
        values = f'"r"(to), "l"(map), "r"(bar), {_values(places)}' + "".join(f', "h"({o})' for o in _OFFSETS[:offsets])
        more = ["mask"] * multicast + ["policy"] * hint
        tail = "".join(f", %{places + offsets + 3 + i}" for i in range(len(more)))
        picked = f", {_places(offsets, places + 3)}" if offsets else ""
        space = "shared::cta" if mode == "tile::gather4" else "shared::cluster"
        instruction = (
            f"cp.async.bulk.tensor.{rank}d.{space}.global.{mode}.mbarrier::complete_tx::bytes{kind}{_HINT if hint else ''} "
            f"[%0], [%1, {_places(places, 3)}], [%2]{picked}{tail};"
        )
        operands = values + (', "h"(mask)' if multicast else "") + (', "l"(policy)' if hint else "")
        parameters = f"u32 to, const TensorMap* map, {_coords(places)}, u32 bar" + "".join(f", u16 {o}" for o in _OFFSETS[:offsets])
        parameters += (", u16 mask" if multicast else "") + (", u64 policy" if hint else "")
        return self.define(name, parameters, instruction, operands)

    def store(self, rank: int, op: str = "", *, hint: bool = False, mode: str = "tile") -> str:
        """Shared to global, or a reduction by `op`."""
        word = _WORDS.get(op, op)
        name = f"cp_reduce_async_bulk_tensor_{rank}d_{word}" if op else f"cp_async_bulk_tensor_{rank}d_s2g"
        form = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{word}" if op else None
        form = form or f"cp.async.bulk.tensor.{rank}d.global.shared::cta"
        places = 5 if mode == "tile::scatter4" else rank
        tail = f", %{places + 2}" if hint else ""
        instruction = f"{form}.{mode}.bulk_group{_HINT if hint else ''} [%0, {_places(places, 2)}], [%1]{tail};"
        parameters = f"const TensorMap* map, {_coords(places)}, u32 from" + (", u64 policy" if hint else "")
        operands = f'"l"(map), "r"(from), {_values(places)}' + (', "l"(policy)' if hint else "")
        return self.define(name + _suffix(mode, hint), parameters, instruction, operands)

    def prefetch(self, rank: int, *, offsets: int, hint: bool, mode: str) -> str:
        """A box of a map into L2."""
        picked = f", {_places(offsets, rank + 1)}" if offsets else ""
        tail = f", %{rank + offsets + 1}" if hint else ""
        instruction = (
            f"cp.async.bulk.prefetch.tensor.{rank}d.L2.global.{mode}{_HINT if hint else ''} [%0, {_places(rank, 1)}]{picked}{tail};"
        )
        values = "".join(f', "h"({o})' for o in _OFFSETS[:offsets]) + (', "l"(policy)' if hint else "")
        parameters = f"const TensorMap* map, {_coords(rank)}" + "".join(f", u16 {o}" for o in _OFFSETS[:offsets])
        name = f"cp_async_bulk_prefetch_tensor_{rank}d" + _suffix(mode, hint)
        return self.define(name, parameters + (", u64 policy" if hint else ""), instruction, f'"l"(map), {_values(rank)}{values}')

    def policy(self, hint: CacheHint) -> str:
        """A cache policy, made where it is used."""
        name = f"createpolicy_{hint.primary}_{hint.secondary}"
        self._used.setdefault(
            name,
            f"""{_HEAD} u64 {name}(float fraction) {{
    u64 policy;
    asm("createpolicy.fractional.L2::{hint.primary}.L2::{hint.secondary}.b64 %0, %1;" : "=l"(policy) : "f"(fraction));
    return policy;
}}""",
        )
        return f"ptx::{name}({hint.fraction!r}f)"

    # ---- plain bulk copies; global addresses are pointers
    def bulk_load(self, *, multicast: bool, hint: bool) -> str:
        """A run of an array to shared memory."""
        name = "cp_async_bulk_g2s" + ("_multicast" if multicast else "") + ("_hint" if hint else "")
        more = ["mask"] * multicast + ["policy"] * hint
        tail = "".join(f", %{4 + i}" for i in range(len(more)))
        kind = (".multicast::cluster" if multicast else "") + (_HINT if hint else "")
        instruction = f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{kind} [%0], [%1], %2, [%3]{tail};"
        operands = f'"r"(to), {_GLOBAL.format("from")}, "r"(bytes), "r"(bar)' + (', "h"(mask)' if multicast else "")
        parameters = "u32 to, const void* from, u32 bytes, u32 bar" + (", u16 mask" if multicast else "")
        return self.define(name, parameters + (", u64 policy" if hint else ""), instruction, operands + (', "l"(policy)' if hint else ""))

    def bulk_store(self, op: str = "", kind: str = "", *, hint: bool) -> str:
        """Shared memory to a run of an array, or a reduction by `op` of elements of PTX type `kind`."""
        word = _WORDS.get(op, op)
        name = (f"cp_reduce_async_bulk_{word}_{kind}" if op else "cp_async_bulk_s2g") + ("_hint" if hint else "")
        form = "cp.reduce.async.bulk" if op else "cp.async.bulk"
        noftz = ".noftz" if word == "add" and kind in ("f16", "bf16") else ""
        typed = f".{word}{noftz}.{kind}" if op else ""
        instruction = f"{form}.global.shared::cta.bulk_group{_HINT if hint else ''}{typed} [%0], [%1], %2{', %3' if hint else ''};"
        operands = f'{_GLOBAL.format("to")}, "r"(from), "r"(bytes)' + (', "l"(policy)' if hint else "")
        return self.define(name, "void* to, u32 from, u32 bytes" + (", u64 policy" if hint else ""), instruction, operands)

    def bulk_prefetch(self, *, hint: bool) -> str:
        """A run of an array into L2."""
        instruction = f"cp.async.bulk.prefetch.L2.global{_HINT if hint else ''} [%0], %1{', %2' if hint else ''};"
        operands = f'{_GLOBAL.format("from")}, "r"(bytes)' + (', "l"(policy)' if hint else "")
        parameters = "const void* from, u32 bytes" + (", u64 policy" if hint else "")
        return self.define("cp_async_bulk_prefetch" + ("_hint" if hint else ""), parameters, instruction, operands)

    def bulk_send(self, op: str = "", kind: str = "") -> str:
        """Shared memory to that of another CTA of the cluster: `to` and `bar` are addresses there."""
        word = _WORDS.get(op, op)
        name = f"cp_reduce_async_bulk_s2s_{word}_{kind}" if op else "cp_async_bulk_s2s"
        form = "cp.reduce.async.bulk" if op else "cp.async.bulk"
        typed = f".{word}.{kind}" if op else ""
        instruction = f"{form}.shared::cluster.shared::cta.mbarrier::complete_tx::bytes{typed} [%0], [%1], %2, [%3];"
        return self.define(name, "u32 to, u32 from, u32 bytes, u32 bar", instruction, '"r"(to), "r"(from), "r"(bytes), "r"(bar)')

    # ---- maps in shared memory
    def replace(self, field: str, ord_: int | None = None) -> str:
        """Writes one field of a map; of fields with an entry for each dimension entry `ord_`, innermost first."""
        bits, constraint, kind = ("b64", "l", "u64") if field in ("global_address", "global_stride") else ("b32", "r", "u32")
        entry = "" if ord_ is None else f"{ord_}, "
        instruction = f"tensormap.replace.tile.{field}.shared::cta.b1024.{bits} [%0], {entry}%1;"
        name = f"tensormap_replace_{field}" + ("" if ord_ is None else f"_{ord_}")
        return self.define(name, f"u32 map, {kind} value", instruction, f'"r"(map), "{constraint}"(value)')

    def define(self, name: str, parameters: str, instruction: str, operands: str) -> str:
        """An instruction of a form of its own."""
        self._used.setdefault(name, _function(name, parameters, instruction, operands))
        return f"ptx::{name}"


_HINT: Final = ".L2::cache_hint"
_OFFSETS: Final = ("offset_w", "offset_h", "offset_d")
_GLOBAL: Final = '"l"(__cvta_generic_to_global({}))'


def _suffix(mode: str, hint: bool) -> str:  # noqa: FBT001  # a part of a name, not an option
    word = {"tile": "", "im2col_no_offs": "_im2col"}.get(mode, "_" + mode.removeprefix("tile::").replace("::", "_"))
    return word + ("_hint" if hint else "")


_N: Final = '"n"(N)'


def _function(name: str, parameters: str, instruction: str, operands: str) -> str:
    line = f'asm volatile("{instruction}" ::{operands} : "memory");'
    if len(line) > 120:
        line = f'asm volatile(\n        "{instruction}" ::{operands}\n        : "memory");'
    return f"{_HEAD} void {name}({parameters}) {{\n    {line}\n}}"


def _coords(rank: int) -> str:
    return ", ".join(f"int c{i}" for i in range(rank))


def _values(rank: int) -> str:
    return ", ".join(f'"r"(c{i})' for i in range(rank))


def _places(rank: int, first: int) -> str:
    return "{" + ", ".join(f"%{first + i}" for i in range(rank)) + "}"
