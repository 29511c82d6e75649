"""Wide im2col copies: no kernel of ours has them, emitted code has."""

from __future__ import annotations

from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda.code import encode_program
from oxidecopy.engines.cuda.emit import emitted
from oxidecopy.errors import DeviceCodeError
from oxidecopy.host.bound import BoundLaunch

DEV = ox.Device.open("sim", arch=100)


@ox.pipeline(threads=32)
def load(cta: ox.Cta, src: ox.Im2colWideDescriptor[Any, Any, Any, Any], out: ox.GlobalArray[Any, ox.D2]) -> None:
    tile = cta.shared(src, halo=2)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        src.prefetch(leader, (0, 0, 0, 0), halo=2, offset=1)
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (0, 0, 0, 0), token, halo=2, offset=cta.block_idx.x)
    full.wait(token)
    cta.store(out, tile, (cta.block_idx.x * 136, 0))
    full.inval()


def bound(mode: str) -> BoundLaunch:
    maps: Any = ox.TmaDescriptor
    desc = maps.im2col_wide(DEV.zeros((2, 3, 9, 64), ox.f16), lower=0, upper=-1, channels=64, pixels=16, mode=mode, swizzle=ox.Swizzle128B)
    return load[2].bind(desc, DEV.zeros((272, 64), ox.f16))


def test_the_kernels_have_none() -> None:
    made = bound("w")
    with pytest.raises(DeviceCodeError) as caught:
        encode_program(made.program, made.launch)
    assert set(caught.value.rules) == {"OX5532"}


@pytest.mark.parametrize(("mode", "words"), [("w", "im2col::w"), ("w128", "im2col::w::128")])
def test_emitted_code_has_them(mode: str, words: str) -> None:
    source = emitted(bound(mode).verify()).source
    assert f"cp.async.bulk.tensor.4d.shared::cluster.global.{words}.mbarrier::complete_tx::bytes" in source
    assert f"cp.async.bulk.prefetch.tensor.4d.L2.global.{words} " in source
    assert "(&src, 0, 0, 0, 0, 2, 1);" in source, "{wHalo, wOffset} in this order (PTX 9.7.9.27)"
