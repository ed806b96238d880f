"""A release: all that was published, as one value. None of it is private, none of it is per row."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Self, TypeVar, cast

import numpy as np

from privgp.gp.changes import SHAPES, Change
from privgp.gp.kernels.registry import KERNELS
from privgp.plan.inputs.inputs import Inputs, ranges
from privgp.plan.parameters import AnyParameters, Parameters
from privgp.privacy.guarantee import Guarantee
from privgp.question.parameters import RECONSTRUCTIONS
from privgp.question.rules import check_output_shares
from privgp.release.answers import Answer, Probabilities
from privgp.release.certificate import steps_of, validate_file
from privgp.release.certificate.document import core_of, hash_of, holder_fields
from privgp.release.parts import Part, Spending, answer_of, check_total
from privgp.storage.archive import DamagedFile, dump, parse, require
from privgp.storage.codec import Codec, Leaf, Leaves
from privgp.storage.fields import array
from privgp.tables.kinds import Number
from privgp.types import Array, Positive, Within, added_field

MOST_COLUMNS = 10_000


@dataclass(frozen=True)
class Facts:
    """What a file states of a release besides its numbers."""

    plan_summary: str
    certificate: dict[str, Any]

    @property
    def date(self) -> str:
        return str(self.certificate["date"])

    @property
    def called(self) -> dict[str, str] | None:
        """What the output is called, and its units."""
        return self.certificate.get("output")

    @property
    def chosen_by(self) -> str | None:
        """How the hyperparameters were chosen."""
        return str(self.certificate["hyperparameters"]["source"])

    def statement(self, release: Release) -> dict[str, Any]:
        """The certificate, without what the custodian adds."""
        return self.certificate

    def for_file(self, release: Release) -> Release:
        """The release as a file holds it."""
        return release

    def with_name(self, called: dict[str, str]) -> Facts:
        """The same with a name of the output."""
        return replace(self, certificate={**self.certificate, "output": called})


@dataclass(frozen=True)
class Planned:
    """The same facts of a release that was just made, computed from its plan once they are needed.

    Attributes
    ----------
    plan : Plan
        The plan that was carried out, the last one where there were several.
    date : str
        When the release was made.
    receipt : mapping, optional
        What the ledger wrote of the charge.
    chosen_by : str, optional
        How the hyperparameters were chosen, if not by learning from the measurement.
    called : dict, optional
        What the output is called, and its units.

    """

    plan: Any
    date: str
    receipt: Mapping[str, Any] | None = None
    chosen_by: str | None = None
    called: dict[str, str] | None = None

    @property
    def plan_summary(self) -> str:
        return str(self.plan.summary())

    def statement(self, release: Release) -> dict[str, Any]:
        return core_of(release, self)

    def for_file(self, release: Release) -> Release:
        asked = release.parameters
        if release.output_names is None:
            # The epsilon of the whole, should part of it have been spent on a choice.
            epsilon = release.guarantee.epsilon if len(release.spent) < 2 else asked.epsilon
            asked = replace(asked, epsilon=epsilon, x_bounds=self.plan.x_bounds or asked.x_bounds)
        stated = {**self.statement(release), "holder": holder_fields(None)}
        return replace(release, parameters=asked, facts=Facts(self.plan_summary, stated))

    def with_name(self, called: dict[str, str]) -> Planned:
        return replace(self, called=called)


T = TypeVar("T")


@dataclass(frozen=True)
class Release:
    """All that was published at once.

    Attributes
    ----------
    parameters : Parameters
        What the custodian declared.
    columns : int
        The number of coordinates that the kernel has.
    names : tuple of str, optional
        The names of the input columns.
    output_names : tuple of str, optional
        The names of several outcomes; None where there is one, which ``facts`` may name.
    guarantee : Guarantee
        What all measurements together guarantee.
    parts : tuple of Part
        What was released of every outcome.
    facts : Facts or Planned
        What is stated besides: the summary of the plan, and the certificate.
    reach : array (rows, columns), optional
        Where the kernel has the public rows that reach furthest along every input.

    """

    parameters: AnyParameters
    columns: Annotated[int, Within(1, MOST_COLUMNS)]
    names: tuple[str, ...] | None
    output_names: tuple[str, ...] | None
    guarantee: Guarantee
    parts: tuple[Part, ...]
    facts: Facts
    reach: Array | None = added_field(None)

    @property
    def outermost(self) -> Array:
        """Points as far along every input as the public rows are; the nodes where these are private."""
        nodes = self.parts[0].functionals.nodes
        return nodes if self.reach is None else np.vstack([nodes, self.reach])

    @property
    def kinds(self) -> Inputs:
        """What the columns of inputs are: numbers where nothing was declared."""
        names = self.names or tuple(f"x{k + 1}" for k in range(self.columns))
        return self.parameters.columns or Inputs(tuple(Number((name,)) for name in names))

    def ranges(self) -> list[str]:
        """How far the inputs reach, in words: the public rows, or declared bounds of plain numbers."""
        declared, points = self.parameters.x_bounds, self.outermost
        if declared is not None:
            if self.parameters.columns is not None:  # which say their bounds themselves
                return []
            pairs = np.reshape(np.asarray(declared, dtype=float), (-1, 2))
            points = np.broadcast_to(pairs, (self.columns, 2)).T
        return ranges(self.kinds, points)

    @property
    def spent(self) -> tuple[Spending, ...]:
        """Every measurement, where more may follow; of several outcomes, that of the first."""
        return self.parts[0].spent

    @cached_property
    def answers(self) -> tuple[Answer | Probabilities, ...]:
        """What predicts every outcome."""
        each = zip(self.parameters.parts(), self.parts, strict=True)
        return tuple(answer_of(asked, part) for asked, part in each)

    @property
    def each(self) -> tuple[Release, ...]:
        """Every outcome as its own release, under the guarantee of all."""
        found = []
        pairs = zip(self.parameters.parts(), self.parts, strict=True)
        for place, (asked, part) in enumerate(pairs):
            one = replace(self, parameters=asked, names=None, output_names=None, parts=(part,))
            if "answers" in vars(self):
                vars(one)["answers"] = self.answers[place : place + 1]
            found.append(one)
        return tuple(found)

    def collect(self, each: Sequence[T], join: Callable[[Sequence[T]], T]) -> T:
        """What every outcome has: the value itself of one without a name, else all of them joined."""
        return each[0] if self.output_names is None else join(each)

    def attributes_of_fit(self) -> dict[str, object]:
        """What an estimator shows of it: of one outcome without a name its values, else one for each."""
        first = [part.models[0] for part in self.parts]
        kernels, maps = tuple(m.kernel for m in first), tuple(m.input_map for m in first)
        asked = zip(self.parameters.parts(), self.parts, strict=True)
        noises = tuple(part.noise_variance if own.scatters else None for own, part in asked)
        answer, measured = self.answers[0], self.parts[0].functionals
        alone = {"kernel_": kernels[0], "input_map_": maps[0], "release_": answer}
        alone |= {"functionals_": measured, "noise_variance_": noises[0]}
        each = {"kernel_": kernels, "input_map_": maps, "noise_variance_": noises}
        named = {**each, "output_names_": self.output_names}
        shown = self.collect([alone], lambda _: named)
        return {name: value for name, value in shown.items() if value is not None}

    def with_facts(self, facts: Facts | Planned, guarantee: Guarantee | None = None) -> Release:
        """The same numbers with other facts, or another guarantee."""
        made = replace(self, facts=cast(Facts, facts), guarantee=guarantee or self.guarantee)
        vars(made)["answers"] = self.answers
        return made

    def with_reach(self, *rows: Array | None) -> Release:
        """The same with the public rows that reach furthest, as far as they are public."""
        public = [each for each in rows if each is not None]
        made = replace(self, reach=np.vstack(public) if public else None)
        vars(made)["answers"] = self.answers
        return made

    def label(self, otherwise: str) -> str:
        """What the output is called on pictures, with its units."""
        called = self.facts.called
        if called is None:
            return otherwise
        return f"{called['name']} ({called['units']})" if "units" in called else called["name"]

    def for_file(self) -> Release:
        """The same as a file holds it."""
        return self.facts.for_file(self)

    def check(self) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        asked, count, names = self.parameters, len(self.parts), self.output_names
        asked.check_for(self.columns)
        require(count == len(asked.parts()), "its outputs are not one per pair")
        if names is not None:
            require(count == len(names), "its outputs are not one per pair")
            require(len({*names}) == count, "its outputs do not have their own names")
            check_output_shares(asked.shares, count)
            averages = RECONSTRUCTIONS[asked.reconstruct].averages
            require(averages, "its parameters are not those of its release")
        named = asked.inputs_of(self.columns)
        fits = self.names is None or len(self.names) == named
        require(fits, "its column names are not one per column")
        fits = self.reach is None or self.reach.shape[1:] == (self.columns,)
        require(fits, "its outermost inputs are broken")
        for part, own in zip(self.parts, asked.parts(), strict=True):
            part.check_for(self.columns, own)
        check_total(self.spent, self.guarantee)
        alike = [[_common_part(each) for each in part.spent] for part in self.parts]
        require(all(own == alike[0] for own in alike), "its measurements are broken")
        stated, several = self.facts.certificate, len(self.spent) > 1
        check_facts(stated, self.guarantee, asked, hash_of(self), several=several)
        told = stated.get("outputs") == (None if names is None else list(names))
        require(told, "its certificate is not about its contents")


def _common_part(each: Spending) -> tuple[object, ...]:
    """What is the same for all outcomes of one measurement."""
    return each.batch, each.rows, each.people, each.guarantee


# What files of earlier versions had.
OLD, CERTIFICATE, RELEASE = "model.json", "certificate.json", "release.json"
# Sentences of guarantees that are worded otherwise now.
WORDS = (
    (rb'were the same in all"', b'were the same in all of them"'),
    (rb"each measured by its(?:elf); of one", b"each measured separately; of one"),
)
FACTS = ("plan_summary", "certificate")
PART = (
    *("measurement", "functionals", "models", "noise_variance", "at_targets", "unit_rate"),
    *("further", "spent"),
)
NOTHING = {"zeros": [0, 0]}
FUNCTIONALS = (
    *("nodes", "weights", "noise_gram", "energy_cross", "energy_noise_gram"),
    *("fixed_gram", "scatter", "shares"),
)


@dataclass(frozen=True)
class WrittenChange:
    """A change as plain numbers: its arrays are small and may be hundreds."""

    kind: Annotated[str, tuple(SHAPES)]
    centre: tuple[float, ...]
    slopes: tuple[tuple[float, ...], ...]
    std: Positive

    @classmethod
    def of(cls, change: Change) -> Self:
        slopes = tuple(map(tuple, change.slopes.tolist()))
        return cls(change.kind, tuple(change.centre.tolist()), slopes, change.std)

    def read(self) -> Change:
        return Change(self.kind, np.array(self.centre), np.array(self.slopes), self.std)


CHANGES: Leaves = {Change: Leaf(WrittenChange, WrittenChange.of, WrittenChange.read)}
CODEC = Codec(Release, "release", {**KERNELS, **CHANGES})


def decode(members: Mapping[str, bytes]) -> Release:
    """Read members back; whatever does not fit together raises ``DamagedFile``."""
    release: Release = CODEC.decode(renew_members(members))
    return release


def renew_members(members: Mapping[str, bytes]) -> dict[str, bytes]:
    """The members of a file of any version, as they are now."""
    try:
        kept = {name: data for name, data in members.items() if name not in (OLD, CERTIFICATE)}
        if OLD in members:
            tree = _release(parse(members[OLD]), members)
            tree["certificate"] = parse(members[CERTIFICATE])
        else:
            tree = parse(kept[RELEASE])
        told = dump(_in_parts(tree)) if "facts" not in tree else kept[RELEASE]
        for old, new in WORDS:
            told = re.sub(old, new, told)
        return {**kept, RELEASE: told}
    except DamagedFile:
        raise
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        raise DamagedFile("it does not have the parts it should") from None


def _in_parts(tree: dict[str, Any]) -> dict[str, Any]:
    """A release as the parts that it has had since format 4; before, one outcome stood alone."""
    rest = dict(tree)
    kind, facts = rest.pop("type"), {name: rest.pop(name) for name in FACTS if name in rest}
    if kind == "JointContents":
        outputs = rest.pop("outputs")
    elif kind in ("Contents", "LabelContents"):
        outputs = [{name: rest.pop(name) for name in PART if name in rest}]
        rest["output_names"] = None
    else:
        raise DamagedFile("it does not say what was released")
    parts = [{**each, "type": "Part"} for each in outputs]
    for part in parts:
        more = part.get("further", [])
        part["further"] = [{**each, "type": "Function"} for each in more]
    return {**rest, "type": "Release", "parts": parts, "facts": {"type": "Facts", **facts}}


def _release(tree: Any, members: Mapping[str, bytes]) -> dict[str, object]:
    def stored(name: str, **form: str) -> Any:
        return {"array": name, **form} if f"{name}.npy" in members else None

    tree = dict(tree)
    maps = []
    for place, share in enumerate(tree.pop("input_maps")):
        knots, ranks = (stored(f"input_map_{place}_{name}") for name in ("knots", "ranks"))
        blend = {"knots": knots, "ranks": ranks} if share else {"knots": NOTHING, "ranks": NOTHING}
        maps.append({"type": "InputMap", "share": share, **blend})
    parameters = {**tree["parameters"], "targets": stored("parameter_targets")}
    if parameters["inducing"] == "points":
        parameters["inducing"] = stored("nodes")
    measured = len(array(members["measurement_values.npy"], "values", 1))
    functionals = {**tree["functionals"], **{name: stored(name) for name in FUNCTIONALS}}
    residual = {"zero": {"zeros": [measured, measured]}, "full": stored("residual_gram")}
    energy = {"diagonal": stored("energy_gram", form="diagonal"), "full": stored("energy_gram")}
    for name, forms in (("residual_gram", residual), ("energy_gram", energy)):
        functionals[name] = forms.get(functionals[name])
    at_targets = None
    if not isinstance(tree["at_targets"], bool):
        raise DamagedFile("it does not say what was released")
    if tree["at_targets"]:
        names = ("targets", "mean", "model_variance", "noise_root")
        at_targets = {name: stored(f"release_{name}") for name in names}
        at_targets |= {"type": "AtTargets", "noise_variance": tree["noise_variance"]}
    return {
        "type": "Contents",
        **tree,
        "parameters": {"type": "Parameters", **parameters},
        "guarantee": {"type": "Guarantee", **tree["guarantee"], "path_curves": []},
        "measurement": {
            "type": "Measurement",
            **tree["measurement"],
            "values": stored("measurement_values"),
            "counts": stored("measurement_counts"),
        },
        "functionals": {"type": "Functionals", **functionals},
        "models": [
            {"type": "Hyperparameters", **model, "input_map": maps[model["input_map"]]}
            for model in tree["models"]
        ],
        "at_targets": at_targets,
    }


def check_facts(
    stated: Mapping[str, Any],
    promised: Guarantee,
    given: Parameters,
    measured: str,
    *,
    several: bool = False,
) -> None:
    """Refuse a certificate that has not its form, or is not about this release. ``measured``: the
    hash of what was measured; ``several``: times, so that parameters are those of one of them."""
    try:
        validate_file(stated)
    except ValueError:
        raise DamagedFile("its certificate is broken") from None
    budget = (promised.epsilon, promised.delta)
    require(
        (stated["epsilon"], stated["delta"]) == budget
        # A private choice may have spent some too.
        and (several or given.epsilon <= promised.epsilon)
        and (several or given.delta <= promised.delta or promised.is_pure)
        and stated["unit"] == promised.unit
        and stated["neighbours"] == promised.neighbours
        and stated["simulation"] == promised.is_simulation
        and stated["bounds"]["outputs"] == np.array(given.y_bounds).tolist()
        and stated["bounds"].get("classes") == given.labels()
        and ("noise_variance" in stated["hyperparameters"]) == given.scatters
        and stated["plan_hash"] == measured
        and _holds_everywhere(stated, promised),
        "its certificate is not about its contents",
    )


def _holds_everywhere(stated: Mapping[str, Any], promised: Guarantee) -> bool:
    """Whether a certificate's steps are those of the guarantee, and its curve, mu and best guess say no
    more."""
    mechanism = stated["mechanism"]
    own, *others = map(steps_of, promised.events)
    if {**mechanism, **own} != mechanism or mechanism.get("others", []) != others:
        return False
    slack = 1.0 + 1e-6  # versions may round otherwise
    curve = [(promised.delta_at(epsilon), delta) for epsilon, delta in stated["curve"]]
    guess = 0.5 + 0.5 * promised.delta_at(0.0)
    pairs = [*curve, (promised.mu, stated["mu"]), (guess, stated["best_guess"])]
    return all(least <= slack * told for least, told in pairs)
