import pytest

pytest.importorskip("fastapi")

from tests.ledger.conftest import postgresql  # noqa: F401
from tests.server.world import ANALYST, running


@pytest.fixture(scope="package")
def world(tmp_path_factory):
    """One server for tests that leave it as it was, or add to it."""
    with running(tmp_path_factory.mktemp("server")) as made:
        yield made


@pytest.fixture(scope="package")
def plan(world):
    return world.plan(ANALYST, "visits", compare=[0.25])


@pytest.fixture(scope="package")
def release(world, plan):
    return world.released(ANALYST, "visits", plan, "the-first-release")


@pytest.fixture(scope="package")
def function(world):
    return world.made("visits", "the-first-function")
