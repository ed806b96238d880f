"""What a custodian asks a whole function or sample paths to be, and what anybody asks of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern

from privgp.models.function.estimator import PrivateFunction
from privgp.models.paths import PosteriorPaths
from privgp.server.declared import MOST_INPUTS, Asked, Declared, Finite
from privgp.server.errors import Refused
from privgp.server.settings import Settings
from privgp.server.store.schema import Row

Size = Annotated[float, Field(ge=1e-30, le=1e30)]
SMOOTHNESS = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
ESTIMATORS: dict[str, Any] = {"function": PrivateFunction, "paths": PosteriorPaths}


class Prior(Asked):
    """The kernel, in units of the inputs and squared units of the output, chosen without the data."""

    shape: Literal["rbf", "matern12", "matern32", "matern52"] = "rbf"
    variance: Size
    lengthscales: Annotated[tuple[Size, ...], Field(min_length=1, max_length=MOST_INPUTS)]
    epsilon: Annotated[float, Field(gt=0, le=1000)]
    delta: Annotated[float, Field(gt=0, lt=1)]

    def check(self, declared: Declared, rows: int, settings: Settings) -> None:
        """Refuse a dataset whose people this could not guarantee anything to."""
        if not declared.is_plain:
            raise Refused(422, "Functions and paths need numbers, one row per person, and bounds.")
        if len(self.lengthscales) not in (1, len(declared.inputs)):
            raise Refused(422, "lengthscales must be one number, or one per input.")
        self.check_size(rows, settings)

    def check_size(self, rows: int, settings: Settings) -> None:
        if rows > settings.max_exact_rows:
            raise Refused(
                422, f"More than {settings.max_exact_rows:,} rows: this would take too long."
            )

    @property
    def kernel(self) -> Kernel:
        scale = self.lengthscales[0] if len(self.lengthscales) == 1 else [*self.lengthscales]
        nu = SMOOTHNESS.get(self.shape)
        return ConstantKernel(self.variance) * (RBF(scale) if nu is None else Matern(scale, nu=nu))


class FunctionAsked(Prior):
    """The posterior mean as one noisy function. ``inducing``: this many numbers fix it, and any number
    of points is then answered; otherwise as many as the server allows."""

    kind: Literal["function"]
    noise_variance: Size
    inducing: Annotated[int, Field(ge=1, le=1000)] | None = None

    def check_size(self, rows: int, settings: Settings) -> None:
        if self.inducing is None:
            super().check_size(rows, settings)

    def estimator(self, declared: Declared, _: int) -> Any:
        return PrivateFunction(
            self.kernel,
            self.noise_variance,
            y_bounds=declared.pairs[0],
            epsilon=self.epsilon,
            delta=self.delta,
            protect=declared.protect,
            domain=declared.domain,
            inducing=self.inducing,
        )


class PathsAsked(Prior):
    """Paths of the posterior, of whole records. The least noise variance that keeps the budget is
    found; or, where one is given, the least further noise."""

    kind: Literal["paths"]
    noise_variance: Size | None = None
    n_paths: Annotated[int, Field(ge=1, le=50)] = 1
    max_points: Annotated[int, Field(ge=1, le=4000)] = 1000

    def estimator(self, declared: Declared, rows: int) -> Any:
        if declared.x_bounds is None:
            raise Refused(
                422, "Paths hide whole records: register the table with protect = records."
            )
        noise = self.variance if self.noise_variance is None else self.noise_variance
        given: Row = {"domain": declared.domain, "y_bounds": declared.pairs[0], "delta": self.delta}
        given |= {"n_paths": self.n_paths, "max_points": self.max_points}
        made = PosteriorPaths(self.kernel, noise, **given)
        by = "noise_variance" if self.noise_variance is None else "extra_noise"
        least = made.calibrate(self.epsilon, rows, by=by)
        return made.set_params(noise_variance=least.noise_variance, extra_noise=least.extra_noise)


AnyAsked = Annotated[FunctionAsked | PathsAsked, Field(discriminator="kind")]


class PointsAsked(Asked):
    points: Annotated[
        list[Annotated[list[Finite], Field(min_length=1, max_length=MOST_INPUTS)]],
        Field(min_length=1),
    ]
