"""The papers' tables and figures, one module each, beside what the defaults give."""
