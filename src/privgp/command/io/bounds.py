"""Bounds of inputs on the command line: ``--x-bounds 0 90``, once per input."""

from __future__ import annotations

from collections.abc import Sequence

from privgp.command.errors import Refusal, refusal

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
    pairs = []
    for word in words:
        low, colon, high = word.partition(":")
        if not (colon and _is_number(low) and _is_number(high)):
            raise Refusal(f"{OPTION} must be two numbers, such as {OPTION} 0 90.")
        pairs.append((float(low), float(high)))
    if len(pairs) != inputs:
        raise Refusal(f"{OPTION} must be given once per input: {inputs} times, not {len(pairs)}.")
    try:
        return domain(pairs)
    except ValueError as problem:
        raise refusal(problem) from None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
