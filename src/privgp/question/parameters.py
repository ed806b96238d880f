"""The parameters of a release, each declared once.

The options of the command and the fields of the server's requests are made from this table. The
constructors of the estimators and the records in plans and files are compared with it by
``tests/question/test_parameters.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any, Literal

from privgp.limits import Positive, Share, Within, added_field
from privgp.question.outcomes import CLASSIFIER, REGRESSOR, UNITS

GENERAL = "PrivateGP"
EVERY = (REGRESSOR, CLASSIFIER, GENERAL)
ALONE = (REGRESSOR, CLASSIFIER)  # the estimators of one outcome
LEAST_SHARE = 1e-4  # that a class may be declared to have
MOST_EPSILON = 1e4
MOST_INDUCING = 5000
MOST_ROWS = 2**16  # of one person
KIND_OPTIONS = (
    "--dates", "--categories", "--places", "--crs", "--periodic", "--booleans", "--numbers",
)  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """One of several words."""

    words: tuple[str, ...]

    @property
    def type(self) -> Any:
        return Literal[self.words]

    def limits(self, most: float | None) -> dict[str, float]:
        return {}

    def check(self, name: str, value: object) -> None:
        if not isinstance(value, str) or value not in self.words:
            listed = ", ".join(map(repr, self.words))
            raise ValueError(f"{name} must be one of {listed}, got {value!r}.")


@dataclass(frozen=True)
class Span:
    """A number from ``least`` to ``most``.

    Attributes
    ----------
    least, most : float
    whole : bool
        Whether it counts something.
    others : bool
        Whether it may be something else than a number, which is checked where it is used.

    """

    least: float = 1e-50
    most: float = 1e50
    whole: bool = False
    others: bool = False

    @property
    def type(self) -> Any:
        return int if self.whole else float

    def limits(self, most: float | None) -> dict[str, float]:
        """The ends, as schemas have them; ``most``: a smaller largest number."""
        return {"ge": self.least, "le": self.most if most is None else most}

    def check(self, name: str, value: object) -> None:
        right = isinstance(value, Integral if self.whole else Real) and not isinstance(value, bool)
        if not right and (not self.others or isinstance(value, str | bool)):
            raise ValueError(f"{name} must be a {'whole ' if self.whole else ''}number.")
        if isinstance(value, Real) and right and not self.least <= float(value) <= self.most:
            low = "positive" if 0.0 < self.least <= 1e-50 else f"at least {self.least:g}"
            under = "below" if float(f"{self.most:g}") > self.most else "at most"
            high = "finite" if self.most >= 1e50 else f"{under} {self.most:,g}"
            raise ValueError(f"{name} must be {low} and {high}, got {value!r}.")


@dataclass(frozen=True)
class Parameter:
    """What a custodian declares or chooses.

    Attributes
    ----------
    name : str
        In Python and in files.
    meaning : str
        One or two sentences. Names of parameters stand between backticks, with a value where one is meant:
        the command writes them as options.
    default : str or float, optional
    values : Choice or Span, optional
        What it may be, if it is a word or a number. The command and the server then take it as it is.
    estimators : tuple of str
        The names of the estimators that take it.
    options : tuple of str
        The options of the command that say it; none: ``--`` and its name.
    panel : {"Privacy", "Model"}
        Where the command's help shows it.
    metavar : str, optional
        How the command's help shows a value.
    served : {"", "dataset", "plan"}
        Whether the server takes it: declared by a custodian with a dataset, or chosen for every plan.
    most_served : float, optional
        The largest number that the server takes.
    kept : bool
        Whether plans and files hold it.

    """

    name: str
    meaning: str
    default: str | float | None = None
    values: Choice | Span | None = None
    estimators: tuple[str, ...] = EVERY
    options: tuple[str, ...] = ()
    panel: str = "Model"
    metavar: str | None = None
    served: str = ""
    most_served: float | None = None
    kept: bool = True

    @property
    def type(self) -> Any:
        """What the command and the server read."""
        assert self.values is not None
        return self.values.type | None if self.default is None else self.values.type

    def is_default(self, value: object) -> bool:
        same = isinstance(value, Real | str) and value == self.default
        return value is self.default or same


TABLE = (
    Parameter("kernel", "The kernel, in units of the inputs and squared units of the output.", estimators=ALONE),
    Parameter("noise_variance", "The variance of outputs around the function.", None, Span(5e-324, 1.7e308, others=True),
              (REGRESSOR,)),
    Parameter("y_bounds", "Public bounds of the output, chosen without seeing the data. Values outside are clipped.",
              estimators=(REGRESSOR,), options=("--bounds",)),
    Parameter("classes", "If the output is a label: all labels that may occur, chosen without looking at them.",
              estimators=(CLASSIFIER,)),
    Parameter("x_bounds", "With `protect='records'`: public bounds of the inputs, chosen without looking at "
              "them. Inputs outside are moved to them."),
    Parameter("epsilon", "The budget: smaller is more private.", 1.0, Span(most=MOST_EPSILON), served="plan",
              most_served=1000),
    Parameter("delta", "The probability with which the guarantee may fail, well below one over the number of people. "
              "It may be 0 with Laplace noise.", 1e-6, Span(0.0, 1.0 - 1e-16), served="plan"),
    Parameter("protect", "What is private.", "outputs", Choice(tuple(dict.fromkeys(word for word, _ in UNITS))),
              served="dataset"),
    Parameter("targets", "Where the release should be accurate. Default: at the rows; with `protect='records'`, everywhere "
              "within the bounds."),
    Parameter("objective", "What the measurement minimises.", "posterior",
              Choice(("posterior", "trace", "max", "logdet")), (REGRESSOR,)),
    Parameter("reconstruct", "A posterior, or unbiased values at the targets, interpolated elsewhere.",
              "posterior", Choice(("posterior", "unbiased")), (REGRESSOR,)),
    Parameter("hyperparameters", "Learned from the private measurement at no cost, or as given.", "learned",
              Choice(("learned", "fixed")), served="plan"),
    Parameter("inducing", "For many rows: the number of inducing inputs. The table is then read in parts. "
              "Default: none up to 20,000 rows, and past them a usual number. With `protect='records'`: the largest "
              "number of bins or features.", None, Span(1, MOST_INDUCING, whole=True, others=True),
              metavar="COUNT", served="plan", most_served=1000),
    Parameter("link", "With `classes`: the link that turns the function into a probability.", "logit",
              Choice(("logit", "probit")), (CLASSIFIER,), served="plan"),
    Parameter("prevalence", "With two `classes`: a public guess of the share of the last one, made without looking at "
              "the labels. Default: nothing is assumed.", None,
              Span(LEAST_SHARE, 1.0 - LEAST_SHARE), (CLASSIFIER,), metavar="SHARE", served="plan"),
    Parameter("mechanism", "The noise distribution. auto takes the one with the smaller expected error.", "auto",
              Choice(("auto", "gaussian", "laplace")), served="plan"),
    Parameter("likelihood", "Whether outputs are numbers (gaussian) or counts (poisson). For counts, the rate is released.",
              "gaussian", Choice(("gaussian", "poisson")), (REGRESSOR,), served="dataset"),
    Parameter("max_change", "How much one person can change one output, such as 1 for a count of people. "
              "Default: from one bound to the other.", None, Span(), (REGRESSOR,), panel="Privacy",
              served="dataset"),
    Parameter("shares", "For several outputs: the noise of an output, relative to its bounds, is proportional "
              "to one over its share. Default: equal.", estimators=(REGRESSOR, GENERAL)),
    Parameter("columns", "The kinds of inputs that are not numbers.", options=KIND_OPTIONS),
    Parameter("most_rows", "With `groups`: use only this many rows of each person, the first ones. Default: all, "
              "or 1,000 where there are many rows.", None, Span(1, MOST_ROWS, whole=True), (REGRESSOR,), metavar="COUNT"),
    Parameter("residuals", "Whether a first part of the budget buys a curve, and the rest measures how far outputs "
              "lie above or below it, clipped to a width learned from the first part. auto: if that lowers the "
              "expected error.", "auto", Choice(("auto", "always", "never")), (REGRESSOR,), served="plan"),
    Parameter("max_weight", "With `protect='records'` and sample weights: the largest weight that counts, chosen "
              "without seeing the data; larger ones are lowered to it.", None, Span(), panel="Privacy"),
    Parameter("engine", "For many rows: the address of a Dask scheduler, whose workers read them.", estimators=(REGRESSOR,), options=("--scheduler",), kept=False),
    Parameter("ledger", "The account to charge.", options=("--ledger", "--dataset"), kept=False),
    Parameter("random_state", "For simulations only: repeatable noise that protects nobody.",
              options=("--seed",), kept=False),
)  # fmt: skip
BY_NAME = {each.name: each for each in TABLE}


@dataclass(frozen=True)
class Reconstruction:
    """How a release is made from what was measured.

    Attributes
    ----------
    averages : bool
        Whether it is a posterior, over hyperparameters that can be learned.
    at_targets : bool
        Whether it is the values at the targets, of outputs that all weigh alike.
    objective : str
        What is then minimised where the default objective was left.

    """

    averages: bool
    at_targets: bool
    objective: str

    def choose_objective(self, given: str) -> str:
        """The objective that was asked for, or this reconstruction's own where the default was left."""
        return self.objective if given == BY_NAME["objective"].default else given


RECONSTRUCTIONS: Mapping[str, Reconstruction] = {
    "posterior": Reconstruction(averages=True, at_targets=False, objective="posterior"),
    "unbiased": Reconstruction(averages=False, at_targets=True, objective="trace"),
}


def choices(name: str) -> tuple[str, ...]:
    """The words that a parameter may be."""
    values = BY_NAME[name].values
    assert isinstance(values, Choice)
    return values.words


def names_of(*estimators: str, kept: bool = False) -> tuple[str, ...]:
    """The names of the parameters that all of these estimators take, or of the ``kept`` ones."""
    taken = (each for each in TABLE if {*estimators} <= {*each.estimators})
    return tuple(each.name for each in taken if each.kept or not kept)


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The parameters of a regressor that are a word or a number, as plans and files keep them.

    A plan is asked for each that it knows by the same name (``plan.build.Question``).
    """

    epsilon: Annotated[float, Within(2.0**-1022, MOST_EPSILON)]
    delta: Share
    protect: Annotated[str, choices("protect")]
    objective: Annotated[str, choices("objective")]
    reconstruct: Annotated[str, choices("reconstruct")]
    hyperparameters: Annotated[str, choices("hyperparameters")]
    mechanism: Annotated[str, choices("mechanism")]
    max_change: Positive | None = added_field(None)
    likelihood: Annotated[str, choices("likelihood")] = added_field("gaussian")
    most_rows: Annotated[int, Within(1, MOST_ROWS)] | None = added_field(None)
    residuals: Annotated[str, choices("residuals")] = added_field("auto")
    max_weight: Positive | None = added_field(None)


def check_values(given: Mapping[str, object]) -> None:
    """Refuse words and numbers that a parameter cannot be; None is a default and is never refused."""
    for each in TABLE:
        value = given.get(each.name, each.default)
        if each.values is not None and (value is not None or each.default is not None):
            each.values.check(each.name, value)
