"""Replay of estimators: every row of the adversary suite, and what it has no row for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from privgp.release.certificate import page
from tests.adversary.replay.leaving import Left, of_files, of_object


def left_by(model: Any, folder: Path) -> Left:
    """All that a fitted estimator gives to whoever has it."""
    shown = {name: value for name, value in vars(model).items() if name != "_kept"}
    left = of_object(shown, "attributes")
    left["repr"] = f"{model!r} {model}".encode()
    left["guarantee"] = f"{model.guarantee_.to_json()} {model.guarantee_.describe()}".encode()
    if hasattr(model, "save"):
        model.save(folder / "model.privgp")
        left |= of_files(folder)
        facts = model.certificate()
        left["certificate.json"] = json.dumps(facts).encode()
        left["certificate.html"] = page(facts).encode()
    return left
