"""The small language of kernels: what it means, that it reads back, what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Kernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from privgp.command.errors import Refusal
from privgp.command.io.kernel_text import parse_kernel, read_kernel

MEANINGS = {
    "100*matern52(10) + 25*rbf(5, 2) + white(4)": ConstantKernel(100.0) * Matern(10.0, nu=2.5)
    + ConstantKernel(25.0) * RBF([5.0, 2.0])
    + WhiteKernel(4.0),
    "rbf([5, 2])": RBF([5.0, 2.0]),
    "exp(3)": Matern(3.0, nu=0.5),
    "matern12(3)": Matern(3.0, nu=0.5),
    "matern32(1, 2, 3)": Matern([1.0, 2.0, 3.0], nu=1.5),
    "rq(2, 0.5)": RationalQuadratic(2.0, 0.5),
    "periodic(1, 12)": ExpSineSquared(1.0, 12.0),
    "7": ConstantKernel(7.0),
    "2*3*rbf(1)": ConstantKernel(6.0) * RBF(1.0),
    "rbf(1)*2": RBF(1.0) * ConstantKernel(2.0),
    "4*white(0.5) + rbf(1)": WhiteKernel(2.0) + RBF(1.0),
    "(rbf(1) + 1)*rbf(2)": (RBF(1.0) + ConstantKernel(1.0)) * RBF(2.0),
    "1e2*rbf(1.5e-3)": ConstantKernel(100.0) * RBF(1.5e-3),
}


@pytest.mark.parametrize("text", MEANINGS)
def test_text_means_the_kernel_it_looks_like(text: str) -> None:
    assert parse_kernel(text) == MEANINGS[text]


REFUSED = [
    "",
    "   ",
    "rbf",
    "rbf()",
    "rbf(-1)",
    "-rbf(1)",
    "rbf(0)",
    "rbf(1) - rbf(2)",
    "rbf(1) / 2",
    "rbf(1) ** 2",
    "rbf(1) +",
    "rbf(1)) + (rbf(1)",
    "rbf('1')",
    "rbf(True)",
    "True*rbf(1)",
    "rbf(1j)",
    "rbf(1e999)",
    "rbf(1e-999)",
    "rbf(" + "9" * 600 + ")",
    "rbf(nan)",
    "rbf(x)",
    "rbf(rbf(1))",
    "rbf([[1, 2]])",
    "rbf([])",
    "rbf(1, [2])",
    "rbf(*[1, 2])",
    "rbf(length_scale=1)",
    "rq(1)",
    "rq([1, 2])",
    "periodic(1, 2, 3)",
    "white(1, 2)",
    "cosine(1)",
    "RBF(1)",
    "rbf.__class__(1)",
    "__import__('os').system('true')",
    "(lambda: rbf(1))()",
    "[rbf(1)]",
    "rbf(1) if 1 else rbf(2)",
    "rbf(1); rbf(2)",
    "rbf(1)\x00",
    "no such file.txt",
    "1e40*1e40",
    "(" * 300 + "rbf(1)" + ")" * 300,
    "+".join(["rbf(1)"] * 200),
    "+".join(["7"] * 120),
    "f'{rbf(1)}'",
    "rbf(1" * 50,
]


@pytest.mark.parametrize("text", REFUSED)
def test_anything_else_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(Refusal) as refusal:
        read_kernel(text)
    assert "\n" not in str(refusal.value)


@given(st.text(alphabet="rbfmatern52(),.*+[]0123456789e whiteqpodc_-='\"\\\n#", max_size=60))
def test_no_text_does_anything_but_parse_or_be_refused(text: str) -> None:
    try:
        kernel = parse_kernel(text)
    except Refusal:
        return
    assert isinstance(kernel, Kernel)


def test_a_file_may_hold_the_kernel_with_comments(tmp_path: Path) -> None:
    file = tmp_path / "kernel.txt"
    file.write_text("100*rbf(5)  # signal\n  + white(4)  # noise\n")
    assert read_kernel(str(file)) == ConstantKernel(100.0) * RBF(5.0) + WhiteKernel(4.0)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "kernel.bin"
    file.write_bytes(b"\xff\xfe\x00rbf(1)")
    with pytest.raises(Refusal, match="cannot be read"):
        read_kernel(str(file))
