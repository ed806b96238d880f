"""What was promised about a release, as JSON for programs and as a page for people."""

from privgp.release.certificate.document import (
    certificate,
    joint_hash,
    plan_hash,
    steps_of,
    stored,
    utc,
)
from privgp.release.certificate.page import page
from privgp.release.certificate.schema import SCHEMA, validate, validate_stored

__all__ = [
    "SCHEMA",
    "certificate",
    "joint_hash",
    "page",
    "plan_hash",
    "steps_of",
    "stored",
    "utc",
    "validate",
    "validate_stored",
]
