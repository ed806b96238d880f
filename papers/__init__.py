"""The papers' tables and figures, repeated on public data: a folder per report, not installed.

``python -m papers NAME`` runs ``papers.NAME.report.run``; what several reports use is in ``shared``.
"""
