"""Arguments against parameters: what an error shows of them."""

from __future__ import annotations

import pytest

import oxidecopy as ox


@ox.pipeline(threads=32)
def four(
    cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2], v: ox.Scalar[ox.f32], n: ox.Idx = 3
) -> None:
    cta.sync()


def test_parameters_are_shown_as_they_are_written() -> None:
    with pytest.raises(ox.errors.ArgumentError) as caught:
        four[1].bind()  # type: ignore[call-arg]  # that is the point
    (broken,) = caught.value.diagnostics
    assert broken.rule == "OX1032"
    assert broken.required == "four(src: TmaDescriptor[f32, D2], out: GlobalArray[f32, D2], v: Scalar[f32], n: Idx = 3)"
