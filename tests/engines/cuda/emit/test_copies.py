"""Emitted copies: which function each form is, and that they compile."""

from __future__ import annotations

import re

import pytest

import oxidecopy as ox
from oxidecopy.conformance import bulk, im2col, replaced
from oxidecopy.engines.cuda import nvrtc
from oxidecopy.engines.cuda.emit import emitted

DEV = ox.Device.open("sim-fast")
CASES = {f"{c.group}: {c.name}": c for c in (*bulk.cases(), *im2col.cases(), *replaced.cases())}
LIBRARY = next((path for major in nvrtc.FOLDERS if (path := nvrtc.find_library(major)) is not None), None)


def source(name: str) -> str:
    text: str = emitted(CASES[name].make(DEV).launch.verify()).source
    return text


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("plain bulk copies: copy f32 1024", ["cp_async_bulk_prefetch", "cp_async_bulk_g2s", "cp_async_bulk_s2g"]),
        ("plain bulk copies: reduce add bf16", ["cp_reduce_async_bulk_add_bf16"]),
        ("plain bulk copies: reduce bit_and u64", ["cp_reduce_async_bulk_and_b64"]),
        ("plain bulk copies: copy, evict half last", ["cp_async_bulk_g2s_hint", "createpolicy_evict_last_evict_unchanged"]),
        ("between CTAs: multicast 2x1x1", ["cp_async_bulk_g2s_multicast_hint"]),
        ("between CTAs: passed on 2x1x1, 1 times", ["cp_async_bulk_s2s"]),
        ("between CTAs: reduce max i32", ["cp_reduce_async_bulk_s2s_max_s32"]),
        ("cache hints: copy 3-D, evict first", ["cp_async_bulk_prefetch_tensor_3d_hint", "cp_async_bulk_tensor_3d_g2s_hint"]),
        ("cache hints: multicast", ["cp_async_bulk_tensor_2d_g2s_hint_multicast", "cp_async_bulk_tensor_2d_s2g_hint"]),
        (
            "replaced maps: f64, rank 3, none",
            [
                "tensormap_copy",
                "tensormap_replace_global_address",
                "tensormap_replace_global_dim_2",
                "tensormap_replace_global_stride_1",
                "tensormap_cp_fenceproxy",
                "fence_proxy_tensormap_acquire",
                "block_number",
            ],
        ),
        ("replaced maps: shared out", ["tensormap_cp_fenceproxy", "cp_async_bulk_tensor_2d_g2s_multicast"]),
        ("im2col: load 4-D 2 SwizzleNone", ["cp_async_bulk_prefetch_tensor_4d_im2col", "cp_async_bulk_tensor_4d_g2s_im2col"]),
        ("im2col: multicast 5-D 4", ["cp_async_bulk_tensor_5d_g2s_im2col_hint_multicast"]),
        ("im2col: reduce 3-D 0", ["cp_reduce_async_bulk_tensor_3d_xor_im2col"]),
    ],
)
def test_each_form_is_a_function(name: str, calls: list[str]) -> None:
    text = source(name)
    for call in calls:
        assert len(re.findall(rf"\bptx::{call}\(", text)) >= 1, call
        assert len(re.findall(rf"\b(void|u64) {call}\(", text)) == 1, call


@pytest.mark.skipif(LIBRARY is None, reason="NVRTC is not installed (extra `kernels`)")
@pytest.mark.parametrize("name", [*list(CASES)[::29], "between CTAs: reduce max i32", "im2col: multicast 5-D 4"])
def test_they_compile(name: str) -> None:
    made = nvrtc.compile_cubin(source(name), name="copy.cu", arch="sm_90a", options=("--std=c++17",), headers={}, library=LIBRARY)
    assert made.cubin
