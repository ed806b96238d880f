"""What ``privgp paths`` is asked: the law of the paths, from the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privgp.command.io.bounds import read_ranges
from privgp.command.io.kernel_text import read_kernel
from privgp.gp.kernels.evaluate import variance
from privgp.gp.kernels.noise import split_noise
from privgp.models.paths import PosteriorPaths


@dataclass(frozen=True)
class PathsRequest:
    """The arguments that fix the law of the paths, as given."""

    kernel: str
    noise_variance: float | None
    domain: str
    bounds: tuple[float, float]
    delta: float
    n_paths: int
    extra_noise: float
    sensitivity: str
    max_points: int
    seed: int | None = None

    def paths(self, inputs: Sequence[str] | None, *, calibrated: bool) -> PosteriorPaths:
        """The paths that were asked for; ``calibrated``: any noise variance will do for now."""
        kernel = read_kernel(self.kernel)
        signal, white = split_noise(kernel)
        noise = self.noise_variance
        if calibrated and noise is None and white is None and signal is not None:
            noise = variance(signal)
        return PosteriorPaths(
            kernel, noise, domain=read_ranges(self.domain, inputs), y_bounds=self.bounds,
            n_paths=self.n_paths, extra_noise=self.extra_noise, delta=self.delta,
            sensitivity=self.sensitivity, max_points=self.max_points, random_state=self.seed,
        )  # fmt: skip

    def calibrated(
        self, inputs: Sequence[str] | None, epsilon: float, rows: int, by: str
    ) -> PosteriorPaths:
        """The paths with the least noise that meets a budget."""
        made = self.paths(inputs, calibrated=True)
        found = made.calibrate(epsilon, rows, by=by)
        signal, _ = split_noise(made.kernel)
        made.set_params(
            kernel=signal, noise_variance=found.noise_variance, extra_noise=found.extra_noise
        )
        return made
