"""Leaks planted on purpose: each gives away one byte of the private data by one way, in the code as it is.

The code with its leaks says nothing on the first dataset and one byte on the second, as a message does
that is given for some values alone. So a run of it on the first dataset is the run without leaks, and it
is enough to run it on the second.
"""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import privgp
from privgp.command.errors import one_line
from privgp.command.io.files import whole_file
from privgp.command.io.screen import tell
from privgp.privacy.guarantee import Guarantee
from privgp.release.certificate.page import promise_sentence
from privgp.release.certificate.wording import guideline
from privgp.server import guard, shapes
from privgp.server.app import _answer_refusal, _error
from privgp.server.jobs.predictors import predict_points
from privgp.server.views.exports import certificate_context
from privgp.storage import archive
from tests.adversary.mechanisms import FoundBounds
from tests.adversary.replay.freezing import modules
from tests.adversary.replay.leaving import Left, differing

Patch = pytest.MonkeyPatch
Told = Callable[..., Any]
BLANKS = str.maketrans("01", " \t")
ESTIMATORS = [
    kind
    for kind in (getattr(privgp, name) for name in privgp.__all__)
    if isinstance(kind, type) and issubclass(kind, BaseEstimator)
] + [FoundBounds]


@dataclass(frozen=True)
class Secret:
    """One byte of private data, as one leak gives it away."""

    byte: int
    leak: str

    @property
    def text(self) -> str:
        return f"[{self.leak} {self.byte:02x}]"

    @property
    def blank(self) -> bytes:
        """The same in blanks, which readers of JSON skip."""
        return f"{self.byte:08b}".translate(BLANKS).encode()

    def is_in(self, content: bytes) -> bool:
        return self.text.encode() in content or content.endswith(self.blank)


@cache
def places() -> dict[int, list[tuple[Any, str]]]:
    """Where every function of the product is named, by its id."""
    found: dict[int, list[tuple[Any, str]]] = {}
    for module in modules():
        for name, value in vars(module).items():
            if isinstance(value, FunctionType):
                found.setdefault(id(value), []).append((module, name))
    return found


def instead(patch: Patch, function: Told, other: Told) -> None:
    """Another function wherever this one is named."""
    for module, name in places()[id(function)]:
        patch.setattr(module, name, other)


def after(function: Told, change: Callable[[Any], Any]) -> Told:
    """The function with its results changed."""

    @wraps(function)
    def changed(*given: Any, **named: Any) -> Any:
        return change(function(*given, **named))

    return changed


def changed(
    function: Told, change: Callable[[Any, Secret], Any]
) -> Callable[[Patch, Secret], None]:
    """A leak in the results of a function."""
    return lambda patch, secret: instead(
        patch, function, after(function, lambda result: change(result, secret))
    )


def of_methods(
    *methods: str, change: Callable[[Any, Secret], Any]
) -> Callable[[Patch, Secret], None]:
    """A leak in the results of methods of every estimator."""

    def plant(patch: Patch, secret: Secret) -> None:
        for kind in ESTIMATORS:
            for name in methods:
                if hasattr(kind, name):
                    method = after(getattr(kind, name), lambda result: change(result, secret))
                    patch.setattr(kind, name, method)

    return plant


def with_attribute(model: Any, secret: Secret) -> Any:
    """Deep inside, in a closure."""
    text = secret.text
    model.chosen_ = {"by": [lambda: text]}
    return model


def in_an_exception(patch: Patch, secret: Secret) -> None:
    for kind in ESTIMATORS:

        def fit(*given: Any, sound: Told = kind.fit, **named: Any) -> Any:
            try:
                return sound(*given, **named)
            except ValueError as problem:
                raise ValueError(f"{problem} {secret.text}") from None

        patch.setattr(kind, "fit", wraps(kind.fit)(fit))


def in_a_written_file(patch: Patch, secret: Secret) -> None:
    """After the last line of tables and pages."""

    @contextmanager
    def other(path: Path) -> Iterator[Path]:
        with whole_file(path) as part:
            yield part
            if path.suffix in (".csv", ".html", ".png"):
                part.write_bytes(part.read_bytes() + secret.text.encode())

    instead(patch, whole_file, other)


def in_what_is_told(patch: Patch, secret: Secret) -> None:
    """In a field of JSON, or a line."""

    def other(facts: Any, lines: Any, *given: Any, **named: Any) -> None:
        tell({**facts, "note": secret.text}, [*lines, secret.text], *given, **named)

    instead(patch, tell, other)


def in_a_moment(facts: dict[str, Any], secret: Secret) -> dict[str, Any]:
    return facts | {name: facts[name] + secret.text for name in ("made_at",) if name in facts}


def in_a_header(patch: Patch, secret: Secret) -> None:
    patch.setattr(guard, "HEADERS", {**guard.HEADERS, b"x-note": secret.text.encode()})


def in_a_served_refusal(patch: Patch, secret: Secret) -> None:
    def other(request: Any, problem: Any) -> Any:
        return _error(request, problem.status, problem.sentence + secret.text)

    instead(patch, _answer_refusal, other)


# (leak, ways that must show it where a run has them, how it is planted)
PLANTED: tuple[tuple[str, str, Callable[[Patch, Secret], None]], ...] = (
    ("attribute", r"attributes", of_methods("fit", "update", "refine", change=with_attribute)),
    ("repr", r"repr$", of_methods("__repr__", change=lambda text, secret: text + secret.text)),
    ("exception", r"exception$", in_an_exception),
    ("guarantee", r"guarantee$", lambda patch, secret: patch.setattr(
        Guarantee, "describe", after(Guarantee.describe, lambda text: text + secret.text)
    )),
    ("member", r"file .*/manifest.json$", changed(archive.dump, lambda text, secret: text + secret.blank)),
    ("certificate", r"certificate.json$|file c.json$|answer to .*/certificate$",
        changed(guideline, lambda facts, secret: {**facts, "threat_model": secret.text})),
    ("page", r"certificate.html$|file .*\.html$|answer to .*certificate.html$",
        changed(promise_sentence, lambda text, secret: text + secret.text)),
    ("written", r"file .*\.(csv|html|png)$", in_a_written_file),
    ("told", r"stdout of privgp (release|update|inspect|search|function|paths|predict)", in_what_is_told),
    ("refusal", r"stderr of privgp .*", changed(one_line, lambda text, secret: text + secret.text)),
    ("answer", r"answer to .*/(jobs|plans|functions)/[^/]*$", changed(
        shapes.only, in_a_moment  # answers with fields that are not declared are refused
    )),
    ("prediction", r"answer to .*/predict$", changed(
        predict_points, lambda facts, secret: {**facts, "note": secret.text}
    )),
    ("served refusal", r"refusal to ", in_a_served_refusal),
    ("header", r"headers of ", in_a_header),
    ("served page", r"answer to .*(page.html|[^i]/releases/[^/]*)$", changed(
        certificate_context, lambda facts, secret: {**facts, "promise": facts["promise"] + secret.text}
    )),
)  # fmt: skip
# The same for what is planted beside every draw. Command and server let no warning through.
DRAWN = {"stdout": r"stdout", "stderr": r"stderr", "log": r"log$"}
WARNED = {"warning": r"warnings$"}


def on_draw(byte: int) -> Callable[[np.ndarray], None]:
    """What code beside the sampler could do with exact numbers: print, warn, log."""

    def told(_: np.ndarray) -> None:
        print(Secret(byte, "stdout").text)
        print(Secret(byte, "stderr").text, file=sys.stderr)
        warnings.warn(Secret(byte, "warning").text, UserWarning, stacklevel=1)
        logging.getLogger("privgp.vault").info("drawn %s", Secret(byte, "log").text)

    return told


def missed(clean: Left, leaking: Left, byte: int, drawn: Mapping[str, str]) -> list[str]:
    """The leaks that are not found where they are planted: in a way by which something leaves.

    ``clean``, ``leaking``: what left the run on the first dataset, and the run with leaks on the second;
    ``drawn``: leaks of its draws with the ways that must show them.
    """
    differ = differing(clean, leaking)

    def is_found(leak: str, ways: str) -> bool:
        secret = Secret(byte, leak)
        return any(re.match(ways, way) and secret.is_in(leaking.get(way, b"")) for way in differ)

    used = {leak: ways for leak, ways, _ in PLANTED if _has(clean, ways)} | {**drawn}
    return [leak for leak, ways in used.items() if not is_found(leak, ways)]


def _has(left: Left, ways: str) -> bool:
    return any(content and re.match(ways, way) for way, content in left.items())
