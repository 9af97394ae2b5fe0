"""Convolutions over separate patches, and what they would take as matrix products."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.operators.shapes.flops import convolved
from advisor.facts.operators.shapes.patches import patches_of, product_of, product_speeds
from advisor.sources.streams.kernels import Signature

FAST = 1e18
"""Bytes a second of a memory that limits nothing."""


def conv(data: tuple[int, ...], weights: tuple[int, ...], out: tuple[int, ...], dtype: str = "FLOAT16") -> Signature:
    text = [",".join(map(str, shape)) for shape in (data, weights, out)]
    kinds = f"{dtype};{dtype}"
    return Signature("Conv3DV2", "AI_CORE", "dynamic", f"{text[0]};{text[1]}", kinds, "NCHW;NCHW", text[2], dtype)


def product(m: int, k: int, n: int, dtype: str = "FLOAT16") -> Signature:
    return Signature(
        "MatMulV2", "AI_CORE", "dynamic", f"{m},{k};{k},{n}", f"{dtype};{dtype}", "ND;ND", f"{m},{n}", dtype
    )


PATCHES = conv((1024, 3, 2, 14, 14), (1280, 3, 2, 14, 14), (1024, 1280, 1, 1, 1))


@pytest.mark.parametrize(
    ("call", "separate"),
    [
        (PATCHES, True),
        (conv((8, 3, 224, 224), (768, 3, 16, 16), (8, 768, 14, 14)), True),
        (conv((8, 64, 56, 56), (64, 64, 3, 3), (8, 64, 56, 56)), False),  # windows overlap
        (conv((8, 64, 56, 56), (128, 64, 3, 3), (8, 128, 28, 28)), False),  # strides of two under kernels of three
        (conv((8, 64, 56, 56), (128, 64, 1, 1), (8, 128, 56, 56)), False),  # a product as it is
        (conv((8, 64, 56, 56), (8, 64, 56, 56), (64, 64, 1, 1)), False),  # gradients of weights are no forward pass
    ],
)
def test_patches_are_separate_where_strides_are_as_long_as_kernels(call: Signature, separate: bool) -> None:
    found = convolved(call)
    assert found is not None and found.separate is separate


def test_the_products_of_the_recording_tell_how_fast_patches_could_be() -> None:
    """20 ms for what products of the same precision do in 1 ms; those of another precision tell nothing."""
    each = product(1024, 1176, 1280)
    rows = [PATCHES, each, product(1024, 1176, 1280, "FLOAT")]
    counts, times = [2, 4, 4], [40_000.0, 4_000.0, 400.0]
    found = patches_of(rows, counts, times, product_speeds(rows, counts, times), FAST)
    assert found is not None and found.us == 40_000
    assert found.product_us == pytest.approx(2_000) and found.product == "1024 × 1176 × 1280"
    assert not found.by_card


@pytest.mark.parametrize(("card", "flop_per_s"), [("", 3.5e13), ("Ascend910A", 1.28e14)])
def test_without_products_the_card_bounds_what_one_takes(card: str, flop_per_s: float) -> None:
    """Half of the card's peak, or of the slowest one's: what even that one does faster, no other card has to wait for.
    A precision of which no card tells its peak leaves it open."""
    found = patches_of([PATCHES], [2], [40_000.0], {}, FAST, card)
    assert found is not None and found.by_card
    assert found.product_us == pytest.approx(2 * 2 * 1024 * 1176 * 1280 / flop_per_s * 1e6)
    single = conv((1024, 3, 2, 14, 14), (1280, 3, 2, 14, 14), (1024, 1280, 1, 1, 1), "FLOAT")
    assert patches_of([single], [2], [40_000.0], {}, FAST) is None


def blocked(data: str, weights: str, out: str) -> Signature:
    formats, kinds = "NC1HWC0;FRACTAL_Z;NCHW", "FLOAT16;FLOAT16;FLOAT16"
    return Signature("Conv2D", "AI_CORE", "dynamic", f"{data};{weights};1152", kinds, formats, out, "FLOAT16")


@pytest.mark.parametrize(
    ("results", "told"),
    [("5476,1,80,1,1,16", "5476 × ≤ 6272 × 1280"), ("5476,2,80,1,1,16", "None")],  # windows overlap in time
)
def test_patches_of_frames_in_blocks_of_channels_are_products_too(results: str, told: str) -> None:
    """A video model embeds two frames at once: its blocks have a dimension more, and are as slow."""
    shapes, kinds = "5476,2,1,14,14,16;392,80,16,16", "DT_BF16;DT_BF16"
    formats = ("NDC1HWC0;FRACTAL_Z_3D", results, "DT_BF16")
    assert str(product_of(Signature("Conv3D", "AI_CORE", "dynamic", shapes, kinds, *formats))) == told


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (blocked("3840,1,14,14,16", "196,72,16,16", "3840,72,1,1,16"), "3840 × ≤ 3136 × 1152"),
        (blocked("2,1,224,224,16", "256,48,16,16", "2,48,14,14,16"), "392 × ≤ 4096 × 768"),
        (blocked("2,4,56,56,16", "36,4,16,16", "2,4,56,56,16"), "None"),  # windows overlap
        (blocked("2,4,56,56,16", "36,8,16,16", "2,8,28,28,16"), "None"),  # strides of two under kernels of three
        (blocked("2,4,56,56,16", "4,8,16,16", "2,8,56,56,16"), "None"),  # a product as it is
    ],
)
def test_patches_in_blocks_of_channels_are_products_too(call: Signature, told: str) -> None:
    """The weights hold a block for each point of the kernel: as many as results leave of the input lie side by side."""
    assert str(product_of(call)) == told


def test_what_memory_limits_is_no_faster_as_a_product() -> None:
    """A stem of few channels reads more than it computes: at 1 GB/s its bytes alone take this long."""
    stem = conv((8, 3, 224, 224), (96, 3, 4, 4), (8, 96, 56, 56))
    found = patches_of([stem], [1], [9_000.0], {"half": 1e9}, 1e9)
    read = 2 * (8 * 3 * 224 * 224 + 96 * 48 + 8 * 96 * 56 * 56)
    assert found is not None and found.product_us == pytest.approx(read / 1e3)


@given(st.tuples(*[st.integers(1, 9)] * 2), st.tuples(*[st.integers(1, 5)] * 4), st.integers(1, 64))
def test_patches_and_their_product_do_the_same_work(size: tuple, grid: tuple, channels: int) -> None:
    """Operations of the convolution are those of rows × inner × columns, twice."""
    batch, kernel = size
    data = (batch, 3, grid[0] * (kernel + 1), grid[1] * (kernel + 1))
    found = convolved(conv(data, (channels, 3, kernel + 1, kernel + 1), (batch, channels, grid[0], grid[1])))
    assert found is None or not found.forward or found.flop == 2 * prod(found.as_product)
