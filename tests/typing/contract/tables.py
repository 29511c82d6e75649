from __future__ import annotations

from typing import Literal as L

import oxidecopy as ox

F32x2 = ox.TmaDescriptor[ox.f32, ox.D2]
Out = ox.GlobalArray[ox.f32, ox.D2]
Table = ox.DescriptorTable[ox.f32, ox.D2]
Turned = ox.DescriptorTable[ox.f32, ox.D2, ox.Swizzle128B]
Small = ox.Box2[L[32], L[32]]
Large = ox.Box2[L[64], L[32]]


@ox.pipeline(threads=128)
def grouped(cta: ox.Cta, src: Table, which: ox.GlobalArray[ox.i32, ox.D1]) -> None:
    tile = cta.shared(src[0])
    full = cta.barrier().init(1)
    i = cta.load_index(which, cta.block_idx.x, below=len(src))
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src[i].g2s(leader, tile, (cta.block_idx.y * 64, 0), token)
    full.wait(token)


@ox.pipeline(threads=128)
def single(cta: ox.Cta, src: F32x2) -> None: ...


@ox.pipeline(threads=128)
def turned(cta: ox.Cta, src: Turned) -> None: ...


def tables_ok(dev: ox.Device, a: Out, b: Out, which: ox.GlobalArray[ox.i32, ox.D1]) -> None:
    table = ox.DescriptorTable([ox.TmaDescriptor.tiled(x, box=(64, 64)) for x in (a, b)])
    grouped[4](table, which)
    grouped[4].prepare(table, which).update(table, which)
    single[1](table[1])
    table.update(0, ox.TmaDescriptor.tiled(b, box=(64, 64)))
    rows, cols = table[0].shape
    count: int = len(table) + len(table.entries)
    boxed = ox.DescriptorTable((ox.TmaDescriptor.tiled(a, box=Large), ox.TmaDescriptor.tiled(b, box=Large)))
    grouped[count](boxed, which)
    swizzled = ox.DescriptorTable([ox.TmaDescriptor.tiled(a, box=Large, swizzle=ox.Swizzle128B)])
    turned[1](swizzled)
    grouped[1](swizzled, which)
    del rows, cols, dev


def tables_bad(a: Out, h: ox.GlobalArray[ox.f16, ox.D2], cube: ox.GlobalArray[ox.f32, ox.D3], which: ox.GlobalArray[ox.i32, ox.D1]) -> None:
    d = ox.TmaDescriptor.tiled(a, box=(64, 64))
    half = ox.TmaDescriptor.tiled(h, box=(64, 64))
    table = ox.DescriptorTable([d, d])
    ox.DescriptorTable([d, half])  # E dtype of an entry
    ox.DescriptorTable([d, ox.TmaDescriptor.tiled(cube, box=(1, 64, 64))])  # E rank of an entry
    ox.DescriptorTable([ox.TmaDescriptor.tiled(a, box=Small), ox.TmaDescriptor.tiled(a, box=Large)])  # E box of an entry
    ox.DescriptorTable([a, a])  # E arrays for descriptors
    ox.DescriptorTable(d)  # E no sequence
    ox.DescriptorTable(2)  # E a number of entries
    table["0"]  # E index
    table[0.5]  # E index
    table.update(0, half)  # E dtype of an entry
    table.update(0, a)  # E an array for a descriptor
    table.update("0", d)  # E index
    grouped[4](ox.DescriptorTable([half]), which)  # E dtype of src
    grouped[4](d, which)  # E a descriptor for a table
    grouped[4]([d, d], which)  # E a list for a table
    single[1](table)  # E a table for a descriptor
    turned[1](table)  # E swizzle


def table_copies(
    cta: ox.Cta, leader: ox.Leader, src: Table, boxed: ox.DescriptorTable[ox.f32, ox.D2, ox.SwizzleNone, Large], token: ox.TxToken[ox.TmaBarrier]
) -> None:
    tile = cta.shared(src[0])
    cta.shared(src)  # E a table for a descriptor
    src.g2s(leader, tile, (0, 0), token)  # E a table for a descriptor
    src[0].g2s(leader, tile, (0, 0, 0), token)  # E rank of coordinates
    src[cta.block_idx.x].g2s(leader, cta.shared(ox.f16, (64, 64), align=ox.A1024), (0, 0), token)  # E dtype of tile
    boxed[0].g2s(leader, cta.shared(ox.f32, Small, align=ox.A1024), (0, 0), token)  # E box of tile
    src[cta.block_idx.x / 2].s2g(leader, tile, (0, 0))  # E true division
    src[cta.block_idx.x < 2].s2g(leader, tile, (0, 0))  # E a condition as index
    src[:].s2g(leader, tile, (0, 0))  # E a slice
