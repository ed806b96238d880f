"""Ranges of inputs, such as ``age=0:90,bmi=15:50``."""

from __future__ import annotations

from collections.abc import Sequence

from privgp.command.errors import Refusal, listed


def ranges(text: str, inputs: Sequence[str] | None) -> list[tuple[float, float]]:
    """``age=0:90,bmi=15:50`` in the order of the inputs, or ``0:90,15:50`` as it stands."""
    found: dict[str, tuple[float, float]] = {}
    for place, part in enumerate(text.split(",")):
        name, equals, span = part.rpartition("=")
        try:
            low, high = (float(value) for value in span.split(":"))
        except ValueError:
            raise Refusal(
                f"--domain '{text}' must be ranges such as age=0:90,bmi=15:50 (low:high)."
            ) from None
        key = name.strip() if equals else str(place)
        if key in found:
            raise Refusal(f"--domain has the input '{key}' twice.")
        found[key] = (low, high)
    if inputs is None or set(found) == {str(place) for place in range(len(inputs))}:
        return list(found.values())
    if set(found) != set(inputs):
        raise Refusal(
            f"--domain must have one range for each input, {listed(list(inputs))}; "
            f"it has {listed(list(found))}."
        )
    return [found[name] for name in inputs]
