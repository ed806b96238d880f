"""What a certificate says in words, in the fields that registries and guidelines ask for. ``core``:
the certificate without those fields; ``holder``: what only the data holder knows."""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Context
from typing import Any

from privgp.privacy.guarantee import Guarantee
from privgp.privacy.noise import Noise
from privgp.privacy.protected import exactly
from privgp.question.outcomes import NUMBER_WORDING, Unit

HOLDER = {
    "name": "name of the data product",
    "curator": "publisher",
    "curator_type": "kind of organisation",
    "intended_use": "purpose",
    "description": "what the data are",
    "region": "region the data describe",
    "sector": "sector the data describe",
    "justification": "why this budget and these choices",
    "future_releases": "plans for further releases of the same data",
    "security": "security of and access to the private data",
    "data_collection": "how the private data were collected and are kept",
    "sources": "further reading",
    "author": "who wrote this record",
    "accountable": "accountable person",
    "contact": "contact",
    "dpia": "reference of the impact assessment",
    "review_date": "date of the next review",
}
ADDED = ("accountable", "contact", "dpia", "review_date")  # certificates of privgp 0.3 have none

# As the OpenDP Deployments Registry names them.
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")

BOUNDS_SOURCE = "declared by the data holder"
LEARNED = "learned from the private measurement itself, at no further cost to the budget"
ROWS_PUBLIC = "the number of rows"
BY_PERSON, BY_GROUP = "which rows belong to one person", "which rows belong to one group"
FIXED = "given by the data holder or set from public inputs and bounds, never from outputs"
FIXED_RECORDS = "given by the data holder or set from the declared bounds, never from the records"
TRUST = "central: the data holder is trusted with the data and publishes nothing else about them"
POST_PROCESSING = "everything after the measurement: learning and predictions read no private value"
COMPOSITION = (
    "one release; each further release of the same data adds to the loss: see privgp.compose"
)
SIMULATED = "NOTHING is protected: the noise was simulated, and this is not for release."
RECORDS_LIMITS = (
    "The number of records is not protected.",
    "One record, its inputs and its output, is protected. If a person has several records, all of "
    "them together are protected less.",
)
PEOPLE_LIMITS = (
    "The number of people is not protected.",
    "All records of one person are protected together if the person identifiers are right. "
    "What several people have in common, such as a household, is protected less.",
)
OUTPUTS_LIMITS = (
    "The inputs are not protected: they are treated as public.",
    "The published file contains values of the inputs from the data.",
    "Whether somebody is in the data, and how many rows there are, is not protected.",
)
ONE_PERSON = (
    "All outputs of one person are protected together if the person identifiers are right. "
    "What several people have in common, such as a household, is protected less."
)
ONE_OUTPUT = (
    "One output value is protected. If a person has several rows, all of that person's outputs "
    "together are protected less, unless person identifiers (groups) are given."
)
ONE_ROW = (
    "All outputs of one row are protected together. If a person has several rows, all of them "
    "together are protected less, unless person identifiers (groups) are given."
)


ONE_CHANGE = (
    "One person's contribution of at most {change} to one output value is protected. The value itself is "
    "not. Somebody who contributes more, or to several values, is protected less."
)
GROUP_CHANGE = (
    "One person's contributions of at most {change} to each output value of one group of rows are "
    "protected. The values themselves are not. Somebody who contributes more, or to several groups, is "
    "protected less."
)


def _whose(people: bool, several: bool, change: float | None) -> str:
    if change is None:
        return ONE_PERSON if people else ONE_ROW if several else ONE_OUTPUT
    return (GROUP_CHANGE if people else ONE_CHANGE).format(change=exactly(change))


def list_public(unit: Unit, inputs: str, whose: str) -> list[str]:
    """What is public of the rows. ``inputs``: what they are called; ``whose``: by what rows belong
    together."""
    rows = "the number of people" if unit.private_inputs and unit.several_rows else ROWS_PUBLIC
    if unit.private_inputs:
        return [rows]
    return [f"the {inputs} of every row", rows, *([whose] if unit.several_rows else [])]


def list_limits(
    simulation: bool,
    people: bool,
    records: bool,
    several: int = 0,
    change: float | None = None,
    classes: Sequence[str] = (),
) -> list[str]:
    """The limits of the guarantee, in plain sentences. ``several``: how many outputs, if several;
    ``change``: the most that one person changes an output by, where that was declared."""
    what = "records" if records else "outputs"
    sentences = [
        *([SIMULATED] if simulation else []),
        *_limits(people, records, several > 0, change),
        "Facts about groups are not protected: people may apply what the published function shows to "
        "anyone, whether or not that person is in the data.",
        f"Each further release of the same {what} weakens the guarantee.",
        f"The guarantee does not hold if {declaration_word(classes)}, kernel, targets or budget were chosen by looking at "
        f"{what}.",
    ]
    if not classes:
        return sentences
    return [each.replace("output value", "output").replace("output", "label") for each in sentences]


def output_title(output: Mapping[str, str]) -> str:
    """What an output is called, with its units."""
    return ", in ".join(output[key] for key in ("name", "units") if key in output)


def declaration_word(classes: Sequence[str]) -> str:
    return "classes" if classes else "bounds"


def preparation(core: Mapping[str, Any]) -> str:
    """What is done to private outputs first."""
    classes = "classes" in core["bounds"]
    return "labels are counted in their classes" if classes else "outputs are clipped to bounds"


def _limits(people: bool, records: bool, several: bool, change: float | None) -> list[str]:
    if records:
        return [*(PEOPLE_LIMITS if people else RECORDS_LIMITS)]
    return [*OUTPUTS_LIMITS, _whose(people, several, change)]


def describe_arithmetic(guarantee: Guarantee, noises: Sequence[Noise]) -> str:
    """How rounding is accounted for. ``noises``: of every measurement."""
    if guarantee.is_simulation:
        return "none: ordinary floating-point noise of a simulation"
    covered = "epsilon" if guarantee.is_pure else "epsilon and delta"
    lattices = ", then to those ".join(
        f"of 2^{noise.exponent} (noise std {noise.std:.6g} in the same units)" for noise in noises
    )
    return (
        f"the measurement is rounded to multiples {lattices} and the noise is drawn exactly on that lattice; rounding errors of the "
        f"computation and the lattice itself are included in {covered}"
    )


def kind_of_promise(core: Mapping[str, Any]) -> str:
    """Which steps make up the guarantee: Gaussian ones by their mu, the others by their epsilon. With
    several batches, those of each."""
    batches = [core["mechanism"], *core["mechanism"].get("others", [])]
    each = "; or ".join(map(_kind_of_steps, batches))
    return f"for each person one of these, by batch: {each}" if len(batches) > 1 else each


def _kind_of_steps(steps: Mapping[str, Any]) -> str:
    mu = math.hypot(*(1.0 / c for c in steps["noise_multipliers"]))
    kinds = [f"Gaussian differential privacy with mu = {mu:.6g}"] if mu > 0 else []
    pure = steps["pure_epsilons"]
    if pure:
        each = " and ".join(f"{epsilon:g}" for epsilon in pure)
        kinds.append(f"pure differential privacy with epsilon = {each}")
    return " and ".join(kinds)


def domain(core: Mapping[str, Any]) -> str:
    """The declared bounds of private inputs; empty where inputs are public. For inputs that are not all
    numbers, what each is, as the kernel's coordinates mean nothing to a reader."""
    if "inputs" in core["bounds"] and "inputs" in core:
        return "; ".join(core["inputs"])
    return " x ".join(
        f"[{low:.12g}, {high:.12g}]" for low, high in core["bounds"].get("inputs", ())
    )


def _within(core: Mapping[str, object], box: str) -> str:
    return f"({box})" if "inputs" in core else f"in {box}"


def output_bounds(core: Mapping[str, Any]) -> str:
    """The declared bounds of the outputs, by their names where there are several."""
    pairs, classes = core["bounds"]["outputs"], core["bounds"].get("classes")
    if classes:
        return f"one private label among {', '.join(classes)}"
    if "outputs" not in core:
        return f"{pairs[0]:.12g} to {pairs[1]:.12g}"
    return ", ".join(_each_range(core, "{name} {low:.12g} to {high:.12g}"))


def _each_range(core: Mapping[str, Any], numbers: str) -> list[str]:
    """Every output with its bounds, in the given words, or with its classes."""
    labels = core["bounds"].get("labels", {})
    each = zip(core["outputs"], core["bounds"]["outputs"], strict=True)
    return [
        f"{name} one of {', '.join(labels[name])}"
        if name in labels
        else numbers.format(name=name, low=low, high=high)
        for name, (low, high) in each
    ]


def private_outputs(core: Mapping[str, Any]) -> str:
    """How many private outputs a row has, and between which bounds."""
    pairs, classes = core["bounds"]["outputs"], core["bounds"].get("classes")
    if classes:
        return f"one private label among {', '.join(classes)}"
    if "outputs" not in core:
        return f"one private output between {pairs[0]:.12g} and {pairs[1]:.12g}"
    each = ", ".join(_each_range(core, "{name} between {low:.12g} and {high:.12g}"))
    return f"{len(pairs)} private output{'s' if len(pairs) > 1 else ''}, {each}"


def describe_release(several: int, classes: Sequence[str], *, at_targets: bool, rates: bool) -> str:
    if classes:
        return "a probability of every class"
    if several:
        return f"{several} functions of the inputs, one per output"
    if rates:
        return "a rate per unit of exposure, as a function of the inputs"
    return "values at the targets" if at_targets else "a function of the inputs"


def threat(core: Mapping[str, object]) -> str:
    known = "all other records" if domain(core) else "every input and all other outputs"
    return (
        f"anyone may hold the published file, know {known}, have any further knowledge and unlimited "
        "computing power"
    )


def versions(core: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in core["software"].items())


def slug(*words: str) -> str:
    """Words as the end of an address: lower-case letters, digits and hyphens."""
    plain = unicodedata.normalize("NFKD", " ".join(words)).encode("ascii", "ignore").decode()
    return "-".join(re.findall("[a-z0-9]+", plain.lower()))


def size_of_data(core: Mapping[str, Any]) -> str:
    """How many rows and people the data have, as far as these numbers are public."""
    data, public = core["data"], core["public"]
    whose = "groups" if BY_GROUP in public else "people"
    people = "" if data["people"] is None else f"{data['people']:,} {whose}"
    if ROWS_PUBLIC not in public:
        return f"the data are of {people}"
    return f"the data have {data['rows']:,} rows{people and f' of {people}'}"


def error_unit(unit: str, output: Mapping[str, str] | None) -> str:
    """The unit of an error, by the declared units of the output where it has them."""
    declared = (output or {}).get("units")
    return declared if declared and unit == NUMBER_WORDING.error_unit else unit


def at_most(value: float, digits: int = 3) -> str:
    """A bound with a few digits, rounded up so that it still holds."""
    context = Context(prec=digits, rounding=ROUND_CEILING)
    return f"{float(context.create_decimal(value)):.{digits}g}"


def utility(core: Mapping[str, Any]) -> str:
    """The error to expect, and what intervals are built for; empty in certificates of privgp 0.2."""
    if "utility" not in core:
        return ""
    told = core["utility"]
    errors = told["expected_error"]
    each = ", ".join(f"{error:.4g}" for error in (errors if isinstance(errors, list) else [errors]))
    return (
        f"the expected error is {each} {error_unit(told['unit'], core.get('output'))} (root mean square at "
        "the targets), and intervals are built to contain the true function with probability "
        f"{told['interval_coverage']:g}"
    )


def registry(core: Mapping[str, Any], holder: Mapping[str, str]) -> dict[str, object]:
    """A draft record in the fields of the OpenDP Deployments Registry, as its YAML names them."""
    mechanism, sector = core["mechanism"], holder["sector"].strip().capitalize()
    what, prepared = f"public inputs, each with {private_outputs(core)}", preparation(core)
    if box := domain(core):
        what = f"records, each with private inputs {_within(core, box)} and {private_outputs(core)}"
        prepared = f"inputs and {prepared}"
    return {
        "url_slug": slug(holder["name"] or "gaussian process", holder["curator"], core["date"][:4]),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": holder["name"],
                "data_curators": [holder["curator"]],
                "intended_use": holder["intended_use"],
                "data_product_type": "Machine learning model",
                "data_product_region": holder["region"],
                "description": holder["description"],
                "publication_date": core["date"][:10],
                **({"data_product_sector": sector} if sector in SECTORS else {}),
            },
            "dp_variant": {
                "variant_name": "Approximate DP" if core["delta"] > 0 else "Pure DP",
                "data_domain": f"{core['data']['rows']} {what}",
                "unprotected_quantities": " ".join(core["not_protected"]),
            },
            "privacy_loss": {
                "privacy_unit": core["unit"],
                "privacy_unit_details": f"{core['neighbours']}; {size_of_data(core)}",
                "privacy_parameters": {"epsilon": core["epsilon"], "delta": core["delta"]},
                "privacy_parameters_details": f"{kind_of_promise(core)}; the whole curve "
                "delta(epsilon) is in the certificate",
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": TRUST,
                "actors": f"the data holder, who is trusted; the public: {threat(core)}",
                "release_type": "One release",
                "release_type_details": holder["future_releases"],
                "data_source_type": "Static",
                "access_type": "Non-interactive",
                "access_type_details": "a file that predicts; it never reads the data again",
            },
            "accounting": {"post_processing": POST_PROCESSING, "composition": COMPOSITION},
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": f"{prepared} "
                f"{core['bounds']['source']}; hyperparameters are "
                f"{core['hyperparameters']['source']}",
                "mechanisms": f"{mechanism['description']}. Sampler: {mechanism['sampler']}. "
                f"Floating point: {mechanism['floating_point']}. Software: {versions(core)}.",
                "justification": ". ".join(
                    filter(None, (holder["justification"].rstrip("."), utility(core)))
                ),
            },
            "administrative": {
                "sources": holder["sources"],
                "registry_authors": [holder["author"]],
            },
        },
    }


def guideline(core: Mapping[str, Any], holder: Mapping[str, str]) -> dict[str, object]:
    """What NIST SP 800-226 asks of a guarantee, from epsilon down to how the data were collected."""
    mechanism, accuracy = core["mechanism"], utility(core)
    return {
        "parameters": {"epsilon": core["epsilon"], "delta": core["delta"]},
        "privacy_unit": core["unit"],
        "neighbouring_definition": core["neighbours"],
        "bounded_or_unbounded": "bounded: values change, the number of rows does not",
        "trust_model": TRUST,
        "threat_model": threat(core),
        "composition": COMPOSITION,
        "mechanism": mechanism["description"],
        "implementation": f"{mechanism['sampler']}; floating point: {mechanism['floating_point']}",
        "utility_and_bias": "clipping to the bounds and the prior of the Gaussian process bias the "
        f"release; its standard deviations include the noise for privacy{accuracy and f'; {accuracy}'}",
        "side_channels": "the release is one file; predictions read nothing private, so their timing "
        "reveals nothing; only the holder sees how long fitting takes, which is not hidden",
        "security_and_access_control": holder["security"],
        "data_collection_exposure": holder["data_collection"],
    }
