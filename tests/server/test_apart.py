"""Who neither serves nor has a cluster needs nothing of the server's nor of Dask."""

from __future__ import annotations

import subprocess
import sys

import pytest

OTHERS = ("fastapi", "uvicorn", "starlette", "jinja2", "dask", "distributed")
LOOK = f"import sys; print([name for name in {OTHERS} if name in sys.modules])"
HELP = """
import sys
from privgp.command import main
sys.argv = ["privgp", "--help"]
try:
    sys.exit(main())
except SystemExit as end:
    assert not end.code
"""


@pytest.mark.parametrize("code", ["import privgp", "from privgp import *", HELP])
def test_neither_the_library_nor_the_help_imports_the_server_or_dask(code):
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{LOOK}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
