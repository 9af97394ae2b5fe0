"""Names of C++ functions, told as people say them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.basics.symbols import plain_symbol
from advisor.knowledge.values import say_value
from advisor.model import Subject
from advisor.render.wording import full_name, where


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("_ZN2at6native29vectorized_elementwise_kernelILi4EZZNS0_", "vectorized_elementwise_kernel"),
        ("_Z12scale_valuesPfS_i", "scale_values"),
        ("_ZN12_GLOBAL__N_17do_workEv", "do_work"),
        ("void at::native::fill<4, at::Array<char*, 1>>(int, float)", "fill"),
        ("void at::native::(anonymous namespace)::CatBatched<float, 3>(float*)", "CatBatched"),
        ("Dataset::Pipeline::GetNext", "Dataset::Pipeline::GetNext"),
        ("aten::add", "aten::add"),
        ("hcom_allReduce__586_0_1", "hcom_allReduce__586_0_1"),
        ("Stream::Sync (device 0)", "Stream::Sync (device 0)"),
        ("_ZN99short", "_ZN99short"),
        ("ns::broken<(", "ns::broken<("),
    ],
)
def test_a_function_is_told_by_its_own_name(name, said):
    """Nobody reads a name that a linker made; what is no such name, or cannot be read, stays as it is."""
    assert plain_symbol(name) == said


@given(st.text(max_size=60), st.sampled_from(["_Z", "_ZN", "void ns::", "a::b<", ""]))
def test_any_name_has_a_name(text, start):
    """Names come from profiles, which may hold anything: never an error, never nothing."""
    assert plain_symbol(start + text) or not start + text


def test_a_finding_says_the_short_name_and_keeps_the_whole_one():
    """The title stays readable; who looks for the kernel elsewhere finds it by its whole name."""
    whole = "_ZN2at6native4fillILi4EE"
    subject = Subject("operator", whole)
    assert where(subject, "en").endswith(" fill") and full_name(subject) == whole
    assert full_name(Subject("operator", "MatMul")) == ""
    assert say_value(("MatMul", whole), "list", "zh") == "MatMul、fill"
