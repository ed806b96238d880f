"""What the tests of plans share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Small matrices are slower on two threads, far slower when the machine is busy."""
    with threadpool_limits(1):
        yield
