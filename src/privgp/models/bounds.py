"""private_bounds: bounds that cover most of the private values, found with a part of the budget."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from sklearn.utils import check_random_state

from privgp.gp.measurement import Measurement
from privgp.ledger.account import Account
from privgp.models.published import generator
from privgp.plan.bins.points import REPLACED, count_bounds
from privgp.plan.strategy import GroupSums, noise_of
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import Guarantee, promise
from privgp.privacy.protected import OUTPUTS, RECORDS
from privgp.privacy.sensitivity import scale_change
from privgp.publish import Payer, Receipt, check_account, publish
from privgp.question.parameters import check_values
from privgp.types import Array, Column, Pair, RandomState
from privgp.vault.measure import measure
from privgp.vault.table import seal_magnitudes, seal_values

COARSE, FINE = (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)  # ends of bins in a decade
MANY = 2000.0  # times epsilon: values from which on bins are fine
MISTAKE = 1e-3  # the probability that an empty bin is taken for one with values
MOST_DECADES = 30
PROTECTED = {"outputs": OUTPUTS, "records": RECORDS}  # whose neighbours differ in one value
ASSUMPTIONS = (
    "the number of values is public, and so is which rows were left out for lack of one",
    "share, smallest, largest, low and budget were chosen without looking at the values",
)


@dataclass(frozen=True)
class PrivateBounds:
    """Bounds that were found with noise: public.

    Attributes
    ----------
    low, high : float
        The bounds.
    share : float
        The share of the values that they are meant to cover.
    guarantee : Guarantee
        What finding them spent. It adds up with that of a release within them.
    charged_ : mapping or None
        The receipt of the ledger that was charged.

    """

    low: float
    high: float
    share: float
    guarantee: Guarantee
    charged_: Receipt | None = None

    @property
    def bounds(self) -> Pair:
        """As ``y_bounds`` takes them."""
        return self.low, self.high


def private_bounds(
    y: Column,
    *,
    epsilon: float,
    share: float = 0.95,
    low: float | None = None,
    smallest: float = 0.01,
    largest: float = 1e9,
    protect: str = "outputs",
    ledger: Account | None = None,
    random_state: RandomState = None,
) -> PrivateBounds:
    """Bounds of private values, for custodians who cannot declare them. Spends ``epsilon``.

    The values are counted in bins of growing width, with Laplace noise. Bins whose noisy count could be
    noise alone are left out, and the bounds are the ends of bins that hold the share of the rest.

    Parameters
    ----------
    y : column
        The private values.
    epsilon : float
        The budget; a tenth of the whole is usual.
    share : float
        The share of the values to cover.
    low : float, optional
        A lower bound that is known, such as 0 for costs. None: it is found too.
    smallest, largest : float
        Magnitudes, chosen without looking at the values: bins begin and end there.
    protect : {"outputs", "records"}
        What a release within the bounds protects: both guarantees then add up, in one account too. All
        values of a person who has several, as ``groups`` protects them, are not protected together here.
    ledger : Account, optional
        The account of these data, which is charged before noise is drawn.
    random_state : int, optional
        For simulations only.

    Returns
    -------
    PrivateBounds

    """
    check_question(epsilon, share, low, smallest, largest)
    check_values({"protect": protect})
    check_account(ledger)
    values = seal_values(y)
    rows = len(values)
    ends = bin_ends(smallest, largest, low, fine=rows * float(epsilon) >= MANY)
    counts, bounds = seal_magnitudes(values, ends), count_bounds(rows)
    bins = len(ends) + 1
    every, one = np.arange(bins), np.ones(bins)
    change = scale_change(REPLACED, bounds)
    strategy = GroupSums(np.eye(bins), every, one, None, 0.0, one, change=change)
    noise = noise_of(strategy, float(epsilon), 0.0)
    promised = promise(
        PROTECTED[protect],
        [noise.event],
        (float(epsilon), 0.0),
        assumptions=ASSUMPTIONS,
        mechanism=f"noisy numbers of values in {bins} bins of declared ends ({noise.describe()})",
        sampler=noise.sampler,
        simulated=random_state is not None,
    )

    def learn(measured: Measurement) -> PrivateBounds:
        half = 0.5 * bounds[1]
        found = read_bounds(measured.values + half, ends, rows, float(epsilon), share, low)
        return PrivateBounds(*found, float(share), promised, receipts[0])

    receipts: list[Receipt | None] = []
    seed = None if random_state is None else int(check_random_state(random_state).randint(2**31))
    return publish(
        promised,
        Payer(ledger),
        lambda: measure(counts, bounds, strategy, noise, generator(seed)),
        learn,
        keep=receipts.append,
    )


def bin_ends(smallest: float, largest: float, low: float | None, *, fine: bool) -> Array:
    """The ends of the bins, rising: round numbers of either sign, and 0; above ``low`` alone."""
    first, last = int(np.floor(np.log10(smallest))), int(np.ceil(np.log10(largest)))
    steps = FINE if fine else COARSE
    sizes = [step * 10.0**k for k in range(first, last) for step in steps] + [10.0**last]
    sizes = [size for size in sizes if smallest <= size <= largest]
    ends = np.array([*(-size for size in sizes[::-1]), 0.0, *sizes])
    return ends if low is None else np.append(low, ends[ends > low])


def read_bounds(
    counts: Array, ends: Array, rows: int, epsilon: float, share: float, low: float | None
) -> Pair:
    """The bounds that noisy counts in bins suggest: post-processing.

    Parameters
    ----------
    counts : array (ends + 1,)
        Noisy counts below the first end, between the ends, and above the last.
    ends : array (ends,)
        Rising.
    rows, epsilon, share, low
        As in ``private_bounds``.

    """
    noisy, scale = np.clip(counts, 0.0, rows), 2.0 / epsilon
    clear = np.flatnonzero(noisy > scale * np.log(0.5 * len(noisy) / MISTAKE))
    first, last = clear[[0, -1]] if len(clear) else np.repeat(np.argmax(noisy), 2)
    # tails fall off bin by bin, so beside bins with values less is needed to tell values from noise
    while last + 1 < len(noisy) and noisy[last + 1] > scale:
        last += 1
    while first > 0 and noisy[first - 1] > scale:
        first -= 1
    kept = np.zeros(len(noisy))
    kept[first : last + 1] = np.maximum(noisy[first : last + 1], 1.0)
    below = np.cumsum(kept) / kept.sum()
    tail = 1.0 - share if low is not None else 0.5 * (1.0 - share)
    # the first bin is below all ends and the last above them: values there are clipped to the ends
    last = int(np.searchsorted(below, 1.0 - tail - 1e-12))
    high = float(ends[min(max(last, 1), len(ends) - 1)])
    if low is not None:
        return float(low), high
    first = int(np.searchsorted(below, tail, side="right"))
    return float(ends[min(max(first - 1, 0), len(ends) - 2)]), high


def check_question(
    epsilon: float, share: float, low: float | None, smallest: float, largest: float
) -> None:
    """Refuse arguments of ``private_bounds`` that are wrong whatever the values are."""
    check_budget(epsilon, 0.0, pure=True)
    if not isinstance(share, Real) or not 0.0 < float(share) < 1.0:
        raise ValueError(f"share must lie between 0 and 1, got {share!r}.")
    if not all(isinstance(each, Real) and np.isfinite(float(each)) for each in (smallest, largest)):
        raise ValueError("smallest and largest must be finite numbers.")
    if not 0.0 < float(smallest) < float(largest) <= float(smallest) * 10.0**MOST_DECADES:
        raise ValueError(
            f"smallest and largest must be positive and rise, by at most {MOST_DECADES} powers of ten."
        )
    if low is not None and not (isinstance(low, Real) and abs(float(low)) < float(largest)):
        raise ValueError("low must be a number below largest.")
