"""Kernels in files and as short text: both read back, and files are checked part by part."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Kernel,
    Matern,
    Product,
    Sum,
    WhiteKernel,
)

from privgp.command.io.kernel_text import parse_kernel, write_kernel
from privgp.gp.kernels.registry import kernel_from, kernel_tree
from privgp.gp.kernels.varying import VaryingLengthscale
from privgp.storage.archive import DamagedFile
from tests.gp.kernels.rows import ROWS

VARYING = VaryingLengthscale(3.0, places=[[0.0], [1.0]], factors=[0.5, 2.0], nu=np.inf)
TEXTS = [row for row in ROWS if row.text is not None]
SAVED = [
    *(row.make(2.0, row.middle) for row in ROWS),
    *(row.make(np.array([1.0, 2.0]), row.middle) for row in ROWS if len(row.shapes) > 1),
    WhiteKernel(0.2, "fixed"),
    RBF(1.0, "fixed"),
    Matern([2.0, 3.0], [(0.1, 10.0), (0.2, np.inf)], nu=1.7),
    DotProduct(0.7),
    VARYING,
]


@pytest.mark.parametrize("row", TEXTS, ids=lambda row: row.name)
def test_a_kernel_is_written_as_its_short_text_which_reads_back(row) -> None:
    kernel = row.make(2.0, row.middle)
    assert write_kernel(kernel) == row.text
    assert parse_kernel(row.text) == kernel


def scales() -> st.SearchStrategy[float]:
    return st.floats(1e-3, 1e3)


def trees() -> st.SearchStrategy[Kernel]:
    """Sums and products of the rows, which may have a constant factor or several lengthscales."""
    rows = [row for row in TEXTS if row.exact is not None]
    several = st.lists(scales(), min_size=2, max_size=3)
    single = st.one_of(*(st.builds(row.make, scales(), scales()) for row in rows))
    leaves = st.one_of(
        single,
        *(st.builds(row.make, several, scales()) for row in rows if len(row.shapes) > 1),
        st.builds(lambda value, kernel: ConstantKernel(value) * kernel, scales(), single),
    )
    return st.recursive(
        leaves,
        lambda part: st.builds(Sum, part, part) | st.builds(Product, part, part),
        max_leaves=6,
    )


@given(kernel=trees(), noise=scales())
def test_written_kernels_read_back(kernel: Kernel, noise: float) -> None:
    whole = kernel + WhiteKernel(noise)
    again = parse_kernel(write_kernel(whole))
    assert again == whole
    assert np.array_equal(again.theta, whole.theta)
    saved = kernel_from(json.loads(json.dumps(kernel_tree(whole))))
    assert saved == whole
    assert np.array_equal(saved.theta, whole.theta)


@pytest.mark.parametrize("kernel", SAVED, ids=str)
def test_a_saved_kernel_reads_back_with_its_bounds(kernel) -> None:
    again = kernel_from(json.loads(json.dumps(kernel_tree(kernel))))
    assert again == kernel
    assert type(again) is type(kernel)
    assert np.array_equal(again.bounds, kernel.bounds)


@pytest.mark.parametrize("kernel", SAVED, ids=str)
def test_a_saved_kernel_with_a_part_that_is_wrong_is_refused(kernel) -> None:
    tree = kernel_tree(kernel)
    with pytest.raises(DamagedFile):
        kernel_from({**tree, "more": 1.0})
    for name in tree:
        with pytest.raises(DamagedFile):
            kernel_from({key: part for key, part in tree.items() if key != name})
        for wrong in (None, True, "text", {}, [], 10**400, float("nan"), float("-inf")):
            with pytest.raises(DamagedFile):
                kernel_from({**tree, name: wrong})
        if not name.endswith("_bounds"):
            for wrong in (0.0, -1.0):
                with pytest.raises(DamagedFile):
                    kernel_from({**tree, name: wrong})


def test_an_unknown_kernel_is_neither_saved_nor_read() -> None:
    with pytest.raises(
        ValueError, match="Exponentiation cannot be saved: files hold numbers and no"
    ):
        kernel_tree(RBF(1.0) + Exponentiation(DotProduct(), 2.0))
    with pytest.raises(DamagedFile):
        kernel_from({**kernel_tree(RBF(1.0)), "type": "Exponentiation"})


def test_a_varying_lengthscale_with_arrays_that_do_not_fit_is_refused() -> None:
    tree = kernel_tree(VARYING)
    for name, wrong in (
        ("places", [[0.0], [1.0, 2.0]]),
        ("places", [0.0, 1.0]),
        ("places", [[0.0]]),
        ("factors", [1.0]),
        ("factors", [1.0, -1.0]),
        ("factors", [[1.0], [2.0]]),
    ):
        with pytest.raises(DamagedFile):
            kernel_from({**tree, name: wrong})


def test_a_kernel_without_end_is_refused() -> None:
    tree = leaf = kernel_tree(RBF(1.0))
    for _ in range(300):
        tree = {"type": "Sum", "k1": tree, "k2": leaf}
    with pytest.raises(DamagedFile):
        kernel_from(tree)
