"""What was guaranteed about a release, as JSON for programs and as a page for people."""

from privgp.release.certificate.document import certificate, plan_hash, plan_statement, steps_of
from privgp.release.certificate.page import page, plan_page
from privgp.release.certificate.schema import SCHEMA, validate, validate_file
from privgp.release.parts import utc

__all__ = [
    "SCHEMA",
    "certificate",
    "page",
    "plan_hash",
    "plan_page",
    "plan_statement",
    "steps_of",
    "utc",
    "validate",
    "validate_file",
]
