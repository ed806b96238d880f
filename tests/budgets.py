"""A budget that sets the noise itself, for tests of what is left with hardly any."""

from __future__ import annotations

from dataclasses import dataclass

from privgp.plan.build import Budget
from privgp.privacy.noise import GaussianNoise, noise_from_multiplier


@dataclass(frozen=True)
class SetNoise(Budget):
    """Gaussian noise of this multiplier, whatever epsilon and delta say."""

    multiplier: float = 1.0

    @property
    def unit_std(self) -> float:
        return noise_from_multiplier(self.multiplier, 1, 2.0, 0.0).std

    def noise_of(self, strategy) -> GaussianNoise:
        size = strategy.size, strategy.sensitivity(), strategy.float_error()
        return noise_from_multiplier(self.multiplier, *size)
