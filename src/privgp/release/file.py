"""What a .privgp file holds: all of it public, none of it per row.

The posterior itself is not kept: it is computed anew from the functionals, the measurement and the
weighted models, to the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from privgp.gp.functionals import Functionals
from privgp.gp.kernels.codec import KERNELS
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.plan.parameters import Parameters
from privgp.privacy.guarantee import Guarantee
from privgp.release.at_targets import AtTargets
from privgp.release.certificate import plan_hash, validate
from privgp.release.old_files import OLD, renewed
from privgp.storage.archive import DamagedFile
from privgp.storage.codec import Codec
from privgp.types import Positive, Within

MOST_MODELS = 256
MOST_COLUMNS = 10_000


@dataclass(frozen=True)
class Contents:
    """One release.

    ``parameters``: of the constructor; ``names``: of the input columns; ``at_targets``: None for a
    posterior; ``noise_variance``: the expected one.
    """

    parameters: Parameters
    columns: Annotated[int, Within(1, MOST_COLUMNS)]
    names: tuple[str, ...] | None
    guarantee: Guarantee
    measurement: Measurement
    functionals: Functionals
    models: tuple[Hyperparameters, ...]
    at_targets: AtTargets | None
    noise_variance: Positive
    plan_summary: str
    certificate: dict[str, Any]

    def check(self) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        _check_parameters(self)
        _check_measured(self)
        _check_models(self)
        _check_certificate(self)


CODEC = Codec(Contents, "release", KERNELS)


def decode(members: Mapping[str, bytes]) -> Contents:
    """Read members back; whatever does not fit together raises ``DamagedFile``."""
    contents: Contents = CODEC.decode(renewed(members) if OLD in members else members)
    return contents


def _check_parameters(c: Contents) -> None:
    given, columns = c.parameters, c.columns
    given.check_for(columns)
    if isinstance(given.inducing, np.ndarray):
        _holds(np.array_equal(given.inducing, c.functionals.nodes), "inducing inputs")
    if c.names is not None and len(c.names) != columns:
        raise DamagedFile("its column names are not one per column")
    if (c.at_targets is not None) != (given.reconstruct == "unbiased"):
        raise DamagedFile("its parameters are not those of its release")


def _check_measured(c: Contents) -> None:
    """What goes with private inputs is there with them, and nowhere else."""
    f, shares = c.functionals, c.functionals.shares
    _holds(f.nodes.shape[1] == c.columns, "number of columns")
    extra = (c.measurement.counts, f.fixed_gram, f.scatter, shares)
    private = c.parameters.protect == "records"
    _holds(all((part is not None) == private for part in extra), "bins")
    if f.scatter is not None and shares is not None:
        _holds(f.scatter.shape[1] * len(shares) == len(f.nodes), "bins")
        _holds(np.all(shares >= 0.0) and abs(float(shares.sum()) - 1.0) <= 1e-9, "bins")
    if c.at_targets is not None:
        _holds(c.at_targets.noise_variance == c.noise_variance, "noise variance")
        _holds(np.all(c.at_targets.model_variance >= 0.0), "variance")


def _check_models(c: Contents) -> None:
    total = sum(model.weight for model in c.models)
    if not 1 <= len(c.models) <= MOST_MODELS or abs(total - 1.0) > 1e-9:
        raise DamagedFile("its models do not have weights that sum to one")
    for model in c.models:
        model.check_for(c.columns)


def _check_certificate(c: Contents) -> None:
    """The certificate has its form and is about this release."""
    try:
        validate(c.certificate)
    except ValueError:
        raise DamagedFile("its certificate is broken") from None
    stated, promised, given = c.certificate, c.guarantee, c.parameters
    budget = (promised.epsilon, promised.delta)
    if (
        (stated["epsilon"], stated["delta"]) != budget
        or given.epsilon != promised.epsilon
        or (given.delta != promised.delta and not promised.is_pure)
        or stated["unit"] != promised.unit
        or stated["neighbours"] != promised.neighbours
        or stated["simulation"] != promised.is_simulation
        or stated["bounds"]["outputs"] != list(given.y_bounds)
        or stated["plan_hash"] != plan_hash(c.functionals, given.y_bounds, *budget)
    ):
        raise DamagedFile("its certificate is not about its contents")


def _holds(holds: Any, what: str) -> None:
    if not holds:
        raise DamagedFile(f"its {what} is broken")
