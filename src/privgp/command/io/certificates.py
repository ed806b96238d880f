"""What was promised, as a page for people or as JSON for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from privgp.command.io.destinations import whole_file
from privgp.release.certificate import certificate, page


def write_certificate(model: Any, path: Path) -> None:
    """HTML or JSON by the file's ending."""
    facts = certificate(model)
    text = page(facts) if path.suffix == ".html" else json.dumps(facts, indent=2) + "\n"
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")
