"""Plans with parts that were changed."""

from dataclasses import replace
from typing import Any


def with_part(plan: Any, **changes: Any) -> Any:
    """The plan with other fields of its first part, and with the noise of this, if it is among them."""
    first, *others = plan.parts
    noise = {"noise": changes["noise"]} if "noise" in changes else {}
    return replace(plan, parts=(replace(first, **changes), *others), **noise)
