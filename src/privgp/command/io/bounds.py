"""Bounds of inputs on the command line: ``--x-bounds 0 90``, once per input, or all in ``--domain``."""

from __future__ import annotations

from collections.abc import Sequence

from privgp.command.errors import Refusal, listed, refusal

OPTION = "--x-bounds"


def with_pairs_joined(arguments: Sequence[str]) -> list[str]:
    """The arguments with every ``--x-bounds LO HI`` as one word, ``--x-bounds=LO:HI``.

    An option that may be repeated can take one word only.
    """
    out, left = [], list(arguments)
    while left:
        word = left.pop(0)
        if word == OPTION and len(left) >= 2 and all(map(_is_number, left[:2])):
            word = f"{OPTION}={left.pop(0)}:{left.pop(0)}"
        out.append(word)
    return out


def read_pairs(words: Sequence[str] | None, inputs: int) -> tuple[tuple[float, float], ...]:
    """One pair of bounds per input."""
    from privgp.models.records import domain  # joining the words must stay quick, as help must

    if not words:
        raise Refusal(
            f"--protect records needs {OPTION} LO HI, once per input: bounds that the private inputs "
            "are known to lie in, chosen without looking at them."
        )
    wrong = f"{OPTION} must be two numbers, such as {OPTION} 0 90."
    pairs = [_pair(word, wrong) for word in words]
    if len(pairs) != inputs:
        raise Refusal(f"{OPTION} must be given once per input: {inputs} times, not {len(pairs)}.")
    try:
        return domain(pairs)
    except ValueError as problem:
        raise refusal(problem) from None


def read_ranges(text: str, inputs: Sequence[str] | None) -> list[tuple[float, float]]:
    """``age=0:90,bmi=15:50`` in the order of the inputs, or ``0:90,15:50`` as it stands."""
    wrong = f"--domain '{text}' must be ranges such as age=0:90,bmi=15:50 (low:high)."
    found: dict[str, tuple[float, float]] = {}
    for place, part in enumerate(text.split(",")):
        name, equals, span = part.rpartition("=")
        key = name.strip() if equals else str(place)
        if key in found:
            raise Refusal(f"--domain has the input '{key}' twice.")
        found[key] = _pair(span, wrong)
    if inputs is None or set(found) == {str(place) for place in range(len(inputs))}:
        return list(found.values())
    if set(found) != set(inputs):
        raise Refusal(
            f"--domain must have one range for each input, {listed(list(inputs))}; "
            f"it has {listed(list(found))}."
        )
    return [found[name] for name in inputs]


def _pair(text: str, wrong: str) -> tuple[float, float]:
    """``low:high``."""
    try:
        low, high = (float(number) for number in text.split(":"))
    except ValueError:
        raise Refusal(wrong) from None
    return low, high


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
