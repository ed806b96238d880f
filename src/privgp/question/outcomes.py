"""What is measured about a person: a number between bounds, a count, or a label.

An outcome is declared without looking at the data. It states the bounds or classes, so that values
outside them are clipped or counted in no class, and it names the estimator and the parameters that
learn it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

REGRESSOR, CLASSIFIER = "PrivateGPRegressor", "PrivateGPClassifier"
UNKNOWN_HIGH = (
    "Count needs high, the largest plausible count, such as Count(high=50): larger counts are clipped "
    "to it, and plans expect rates of about half of it."
)


class Outcome(Protocol):
    """One private column of a table.

    Attributes
    ----------
    estimator : str
        The name of the estimator that learns this outcome alone.
    exposure : str or None
        The name of the public column that counts are counted over.

    """

    @property
    def estimator(self) -> str: ...
    @property
    def exposure(self) -> str | None: ...
    def parameters(self, protect: str) -> dict[str, Any]:
        """The parameters of the estimator that declare this outcome.

        Parameters
        ----------
        protect : {"outputs", "records"}
            What the release protects.

        """


@dataclass(frozen=True)
class Number:
    """A number, clipped to the declared bounds.

    Parameters
    ----------
    low, high : float
        Public bounds, chosen without looking at the values.

    """

    estimator: ClassVar[str] = REGRESSOR
    exposure: ClassVar[None] = None
    low: float
    high: float

    def parameters(self, protect: str) -> dict[str, Any]:
        return {"y_bounds": (self.low, self.high)}


@dataclass(frozen=True)
class Count:
    """A count with a rate that varies over the inputs.

    Parameters
    ----------
    max_change : float
        How much one person changes one count. Under ``protect="records"`` a whole record is replaced,
        its count included, and this is not used.
    high : float
        The largest plausible count. Larger counts are clipped to it.
    exposure : str, optional
        The name of a public column: what every count is counted over, such as a population.

    """

    estimator: ClassVar[str] = REGRESSOR
    max_change: float | None = 1.0
    high: float | None = None
    exposure: str | None = None

    def parameters(self, protect: str) -> dict[str, Any]:
        if self.high is None:
            raise ValueError(UNKNOWN_HIGH)
        change = None if protect == "records" else self.max_change
        return {"y_bounds": (0.0, self.high), "likelihood": "poisson", "max_change": change}


@dataclass(frozen=True, init=False)
class Label:
    """One of several declared classes.

    Parameters
    ----------
    *classes : str or number
        All classes that may occur, two or more. A label that is none of them is counted in no class.

    """

    estimator: ClassVar[str] = CLASSIFIER
    exposure: ClassVar[None] = None
    classes: tuple[Any, ...]

    def __init__(self, *classes: Any) -> None:
        object.__setattr__(self, "classes", classes)

    def parameters(self, protect: str) -> dict[str, Any]:
        return {"classes": list(self.classes)}
