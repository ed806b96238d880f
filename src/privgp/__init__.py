"""Gaussian-process curves and maps of private data under a proved privacy guarantee."""

from privgp import audit
from privgp.models.function import PrivateFunction
from privgp.models.regressor import PrivateGPRegressor
from privgp.plan.preview import Plan
from privgp.privacy.guarantee import Guarantee, compose
from privgp.release.files import load

__version__ = "0.1.0"
__all__ = ["Guarantee", "Plan", "PrivateFunction", "PrivateGPRegressor", "audit", "compose", "load"]
