"""A budget that sets the noise itself, for tests of what is left with hardly any."""

from __future__ import annotations

from dataclasses import dataclass

from privgp.plan.build import Budget
from privgp.privacy.noise import GaussianNoise, scaled_noise


@dataclass(frozen=True)
class SetNoise(Budget):
    """Gaussian noise of this multiplier, whatever epsilon and delta say."""

    multiplier: float = 1.0

    def noise_for(self, size: int, sensitivity: float, float_error: float) -> GaussianNoise:
        return scaled_noise(self.multiplier, size, sensitivity, float_error)

    def noise_of(self, strategy) -> GaussianNoise:
        return self.noise_for(strategy.size, strategy.sensitivity(), strategy.float_error())
