"""Reads alone, writes alone, and copies of other ranks and swizzles: the programs are right, the shapes are what they say."""

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.bench import gpu, one_way


def test_the_writer_writes_all_of_it_and_the_reader_reads() -> None:
    dev = ox.Device.open("sim")
    out = dev.zeros((64, 512), ox.f32)
    one_way.writer[2].bind(ox.TmaDescriptor.tiled(out, box=(32, 256)), 0.5)()
    assert np.all(out.numpy() == 0.5)
    one_way.reader[8].bind(ox.TmaDescriptor.tiled(out, box=(16, 256)))()


@pytest.mark.parametrize("words", ["2-D", "3-D", "4-D", "5-D", "swizzle 128B", "swizzle 64B"])
def test_each_copy_is_of_all_the_array(words: str) -> None:
    copy = dict(one_way.like_plain(gpu.NBYTES))[words]
    assert (copy.nbytes, copy.box_bytes) == (gpu.NBYTES, (32 if words == "swizzle 128B" else 16) << 10)
    assert all(extent % box == 0 for extent, box in zip(copy.shape, copy.box, strict=True))
    assert words != f"{len(copy.shape)}-D" or copy.swizzle is ox.SwizzleNone
    assert words != f"swizzle {4 * copy.box[-1]}B" or words.endswith(copy.swizzle.__name__.removeprefix("Swizzle"))
