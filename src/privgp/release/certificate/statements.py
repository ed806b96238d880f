"""What a certificate says in words, in the fields that registries and guidelines ask for.

``core`` is the certificate without these statements; ``holder`` what only the data holder knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HOLDER = {
    "name": "name of the data product",
    "curator": "who publishes it",
    "curator_type": "kind of organisation",
    "intended_use": "what it is for",
    "description": "what the data are",
    "region": "region the data describe",
    "sector": "sector the data describe",
    "justification": "why this budget and these choices",
    "future_releases": "plans for further releases of the same data",
    "security": "security of and access to the private data",
    "data_collection": "how the private data were collected and are kept",
    "sources": "further reading",
    "author": "who wrote this record",
}

BOUNDS_SOURCE = "declared by the data holder"
LEARNED = "learned from the private measurement itself, at no further cost to the budget"
FIXED = "given by the data holder or set from public inputs and bounds, never from outputs"
TRUST = (
    "central: the holder of the data is trusted with them, computes the release and publishes "
    "nothing else that depends on them"
)
FIXED_RECORDS = "given by the data holder or set from the declared bounds, never from the records"
THREAT = (
    "anyone may hold the published file, know every input and all other outputs, have any further "
    "knowledge and unlimited computing power"
)
THREAT_RECORDS = (
    "anyone may hold the published file, know all other records, have any further knowledge and "
    "unlimited computing power"
)
POST_PROCESSING = (
    "everything after the measurement: learning of hyperparameters, conditioning of the Gaussian "
    "process, every prediction; none of it reads a private value"
)
COMPOSITION = (
    "one release; further releases of the same data add to the privacy loss, exactly as "
    "privgp.compose computes"
)
SIDE_CHANNELS = (
    "the release is one file; predictions read nothing private, so their timing reveals nothing; "
    "the time that fitting takes is seen by the holder only and is not hidden"
)


def not_protected(*, simulation: bool, people: bool, records: bool = False) -> list[str]:
    """Plain sentences on the limits of the promise."""
    loud = ["NOTHING is protected: the noise was simulated, and this is not for release."]
    sentences = _of_records() if records else _of_outputs(people)
    return loud + sentences if simulation else sentences


def _of_records() -> list[str]:
    return [
        "How many records there are is not protected.",
        "One record, its inputs and its output, is protected. If a person has several records, all "
        "of them together are protected less.",
        "Facts about groups are not protected: what the published function shows may be believed "
        "of anybody, whether or not they are in the data.",
        "Several releases compose: each further release of the same records weakens the promise.",
        "The promise fails if bounds, kernel, targets or budget were chosen by looking at records.",
    ]


def _of_outputs(people: bool) -> list[str]:
    unit = (
        "All outputs of one person are protected together, as far as the given person identifiers "
        "are right; what several people have in common, such as a household, is protected less."
        if people
        else "One output value is protected. If a person has several rows, all of that person's "
        "outputs together are protected less; person identifiers (groups) would protect them."
    )
    return [
        "The inputs are not protected: they are treated as public.",
        "The published file contains inputs: the coordinates of rows of the data.",
        "Whether somebody is in the data, and how many rows there are, is not protected.",
        unit,
        "Facts about groups are not protected: what the published function shows may be believed "
        "of anybody, whether or not they are in the data.",
        "Several releases compose: each further release of the same outputs weakens the promise.",
        "The promise fails if bounds, kernel, targets or budget were chosen by looking at outputs.",
    ]


def floating_point(*, simulation: bool, exponent: int, std: float, pure: bool) -> str:
    if simulation:
        return "none: ordinary floating-point noise of a simulation"
    return (
        f"the measurement is rounded to multiples of 2^{exponent} (noise std {std:.6g} in the same "
        "units), noise is drawn exactly on that lattice, and both rounding errors of the "
        f"computation and the lattice itself are included in epsilon{'' if pure else ' and delta'}"
    )


def kind_of_promise(core: Mapping[str, Any]) -> str:
    """Which steps make up the promise: Gaussian ones by their mu, the others by their epsilon."""
    pure = core["mechanism"]["pure_epsilons"]
    kinds = [f"Gaussian differential privacy with mu = {core['mu']:.6g}"] if core["mu"] > 0 else []
    if pure:
        each = " and ".join(f"{epsilon:g}" for epsilon in pure)
        kinds.append(f"pure differential privacy with epsilon = {each}")
    return " and ".join(kinds)


def registry(core: Mapping[str, Any], holder: Mapping[str, str]) -> dict[str, Any]:
    """A draft record in the fields of the OpenDP Deployments Registry, as its YAML names them."""
    mechanism, software = core["mechanism"], core["software"]
    versions = ", ".join(f"{name} {version}" for name, version in software.items())
    low, high = core["bounds"]["outputs"]
    what, clipped, threat = "public inputs, each with one private output", "outputs are", THREAT
    if "inputs" in core["bounds"]:
        domain = " x ".join(f"[{a:g}, {b:g}]" for a, b in core["bounds"]["inputs"])
        what = f"records, each with private inputs in {domain} and one private output"
        clipped, threat = "inputs and outputs are", THREAT_RECORDS
    return {
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": holder["name"],
                "data_curators": [
                    {
                        "data_curator_name": holder["curator"],
                        "data_curator_type": holder["curator_type"],
                    }
                ],
                "intended_use": holder["intended_use"],
                "data_product_type": "Machine learning model",
                "data_product_region": holder["region"],
                "description": holder["description"],
                "publication_date": core["date"][:10],
                "data_product_sector": holder["sector"],
            },
            "dp_variant": {
                "variant_name": "Approximate DP" if core["delta"] > 0 else "Pure DP",
                "data_domain": f"{core['data']['rows']} {what} between {low:g} and {high:g}",
                "unprotected_quantities": " ".join(core["not_protected"]),
            },
            "privacy_loss": {
                "privacy_unit": core["unit"],
                "privacy_unit_details": core["neighbours"],
                "privacy_parameters": {"epsilon": core["epsilon"], "delta": core["delta"]},
                "privacy_parameters_details": f"{kind_of_promise(core)}; the whole curve "
                "delta(epsilon) is in the certificate",
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": TRUST,
                "actors": f"the data holder, who is trusted; the public: {threat}",
                "release_type": "One release",
                "release_type_details": holder["future_releases"],
                "data_source_type": "Static",
                "access_type": "Non-interactive",
                "access_type_details": "a file that predicts; it never reads the data again",
            },
            "accounting": {"post_processing": POST_PROCESSING, "composition": COMPOSITION},
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": f"{clipped} clipped to bounds "
                f"{core['bounds']['source']}; hyperparameters are "
                f"{core['hyperparameters']['source']}",
                "mechanisms": f"{mechanism['description']}. Sampler: {mechanism['sampler']}. "
                f"Floating point: {mechanism['floating_point']}. Software: {versions}.",
                "justification": holder["justification"],
            },
            "administrative": {
                "sources": holder["sources"],
                "registry_authors": [holder["author"]],
            },
        },
    }


def guideline(core: Mapping[str, Any], holder: Mapping[str, str]) -> dict[str, Any]:
    """What NIST SP 800-226 asks of a guarantee, from epsilon down to how the data were collected."""
    mechanism = core["mechanism"]
    return {
        "parameters": {"epsilon": core["epsilon"], "delta": core["delta"]},
        "privacy_unit": core["unit"],
        "neighbouring_definition": core["neighbours"],
        "bounded_or_unbounded": "bounded: values change, the number of rows does not",
        "trust_model": TRUST,
        "threat_model": THREAT_RECORDS if "inputs" in core["bounds"] else THREAT,
        "composition": COMPOSITION,
        "mechanism": mechanism["description"],
        "implementation": f"{mechanism['sampler']}; floating point: {mechanism['floating_point']}",
        "utility_and_bias": "clipping to the bounds and the prior of the Gaussian process bias the "
        "release; its standard deviations include the noise for privacy",
        "side_channels": SIDE_CHANNELS,
        "security_and_access_control": holder["security"],
        "data_collection_exposure": holder["data_collection"],
    }
