"""Planning and fitting where inputs are private too."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import _num_samples

from privgp.models.tables import any_column, domain_of
from privgp.plan.inputs.arguments import domain_pairs
from privgp.vault.masked import Sealed
from privgp.vault.tables import seal_rows
from privgp.vault.validate import seal_inputs

if TYPE_CHECKING:
    from privgp.models.published import Published

    pass

MOST_INPUTS = 20


def domain(x_bounds: Any) -> tuple[tuple[float, float], ...]:
    """The declared domain of the private inputs, one (low, high) each."""
    pairs = domain_pairs("x_bounds", x_bounds)
    if len(pairs) > MOST_INPUTS:
        raise ValueError(
            f"protect='records' takes at most {MOST_INPUTS} inputs, got x_bounds of {len(pairs)}: use "
            "fewer inputs, protect='outputs' if the inputs are public, or PosteriorPaths, which "
            "releases whole sample functions over any number of private inputs."
        )
    return pairs


def private_inputs(model: Published, X: Any) -> Sealed:
    """Where the kernel has private inputs: for the vault alone."""
    if model.inputs_ is None:
        return seal_inputs(X, len(domain(domain_of(model))))
    return seal_rows(X, model.inputs_)


def row_count(X: Any) -> int:
    """The number of records: given, or the length of a table."""
    try:
        rows = int(X) if isinstance(X, Integral) else int(_num_samples(any_column(X)))
    except TypeError:
        raise ValueError("X must be a table of records or their number.") from None
    if rows < 1:
        raise ValueError("X must hold at least one record.")
    return rows
