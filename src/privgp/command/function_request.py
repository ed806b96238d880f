"""What ``privgp function create`` is asked: the function, from the command line."""

from __future__ import annotations

from dataclasses import dataclass

from privgp.command.errors import Refusal
from privgp.command.io.bounds import read_ranges
from privgp.command.io.kernel_text import read_kernel
from privgp.command.io.request import Request
from privgp.models.function.estimator import PrivateFunction


@dataclass(frozen=True)
class FunctionRequest:
    """The arguments of ``privgp function create`` as given."""

    base: Request
    kernel: str
    sensitivity: str
    inducing: int | None
    protect: str = "outputs"
    domain: str | None = None
    dominance: float | None = None

    def check(self) -> None:
        self.base.check()
        if self.base.output is None:
            raise Refusal("--output must name the private column.")
        if (self.protect == "records") != (self.domain is not None):
            raise Refusal("--protect records and --domain go together: give both or neither.")

    def function(self) -> PrivateFunction:
        """The function that was asked for; reads the kernel."""
        return PrivateFunction(
            read_kernel(self.kernel),
            self.base.noise_variance,
            y_bounds=self.base.bounds,
            epsilon=self.base.epsilon,
            delta=self.base.delta,
            sensitivity=self.sensitivity,
            dominance=self.dominance,
            inducing=self.inducing,
            protect=self.protect,
            domain=None if self.domain is None else read_ranges(self.domain, self.base.input_names),
            random_state=self.base.seed,
        )
