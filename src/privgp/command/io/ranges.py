"""Ranges of inputs on the command line: ``--x-bounds 0 90``, ``--domain age=0:90,bmi=15:50``."""

from __future__ import annotations

from collections.abc import Sequence

from privgp.command.errors import Refusal, listed

PAIRS = "--x-bounds"


def with_pairs_joined(arguments: Sequence[str]) -> list[str]:
    """The arguments with every ``--x-bounds LO HI`` as one word, ``--x-bounds=LO:HI``.

    An option that may be repeated can take one word only.
    """
    out, left = [], list(arguments)
    while left:
        word = left.pop(0)
        if word == PAIRS and len(left) >= 2 and all(map(_is_number, left[:2])):
            word = f"{PAIRS}={left.pop(0)}:{left.pop(0)}"
        out.append(word)
    return out


def read_ranges(
    words: Sequence[str], inputs: Sequence[str] | None, option: str
) -> list[tuple[float, float]]:
    """One (low, high) per input, from ``0:90`` in the order of the inputs or ``age=0:90`` by name.

    A word holds one range or several, separated by commas. ``inputs`` None: any number of them.
    """
    names, ranges = [], []
    for part in (part for word in words for part in word.split(",")):
        name, equals, span = part.rpartition("=")
        try:
            low, high = (float(value) for value in span.split(":"))
        except ValueError:
            raise _malformed(option) from None
        if equals:
            names.append(name.strip())
        ranges.append((low, high))
    for name in names:
        if names.count(name) > 1:
            raise Refusal(f"{option} has the input '{name}' twice.")
    if names and len(names) < len(ranges):
        raise _malformed(option)
    if inputs is None:
        return ranges
    if names and set(names) != set(inputs):
        raise Refusal(
            f"{option} must have one range for each input, {listed(list(inputs))}; "
            f"it has {listed(names)}."
        )
    if len(ranges) != len(inputs):
        raise Refusal(
            f"{option} must have one range for each input: {len(inputs)}, not {len(ranges)}."
        )
    return [ranges[names.index(name)] for name in inputs] if names else ranges


def _malformed(option: str) -> Refusal:
    such = f"{PAIRS} 0 90" if option == PAIRS else "age=0:90,bmi=15:50"
    return Refusal(f"{option} must be two numbers for each input, such as {such}.")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
