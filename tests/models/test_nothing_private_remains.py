"""No private value in anything that outlives ``fit``: attributes, pickle, repr, log, errors."""

from __future__ import annotations

import logging
import pickle
import struct

import numpy as np
import pytest

from privgp import PrivateGPRegressor

SENTINELS = (1.2345678901234567, -0.98765432109876543, 1.7182818284590453)


def traces(value: float) -> list[bytes]:
    """A value, and the same scaled to [-1, 1], as it could stand in memory or text."""
    forms = []
    for number in (value, value / 2.0):
        forms += [struct.pack(code, number) for code in ("<d", ">d")]
        forms += [repr(number).encode(), f"{number:.9f}".encode(), f"{number:.8g}".encode()]
    return forms


def short_traces(code: str, divisor: float) -> list[bytes]:
    """The sentinels in single precision. Four bytes can turn up by chance; all three hardly."""
    return [struct.pack(code, value / divisor) for value in SENTINELS]


@pytest.fixture(scope="module", params=["posterior", "unbiased", "fixed", "groups", "several"])
def fitted(request):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30, 1))
    y = rng.uniform(-2, 2, size=30)
    y[:3] = SENTINELS
    settings = {
        "unbiased": {"reconstruct": "unbiased"},
        "fixed": {"hyperparameters": "fixed"},
    }.get(request.param, {})
    groups = np.arange(30) // 3 if request.param == "groups" else None
    several = request.param == "several"
    model = PrivateGPRegressor(y_bounds=[(-2, 2)] * 2 if several else (-2, 2), **settings)
    records: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())
    logging.getLogger().addHandler(handler)
    model.fit(X, np.column_stack([y, y[::-1]]) if several else y, groups=groups)
    logging.getLogger().removeHandler(handler)
    return model, records, y


def test_the_search_finds_what_is_there():
    blob = pickle.dumps(np.array(SENTINELS))
    assert all(any(form in blob for form in traces(value)) for value in SENTINELS)


def test_no_output_is_left_in_the_model(fitted):
    model, records, y = fitted
    whole = (
        pickle.dumps(model)
        + pickle.dumps(vars(model))
        + repr(model).encode()
        + repr(vars(model)).encode()
        + model.guarantee_.to_json().encode()
        + model.plan_.describe().encode()
        + "".join(records).encode()
    )
    for value in SENTINELS:
        for form in traces(value):
            assert form not in whole
    for code in ("<f", ">f"):
        for divisor in (1.0, 2.0):
            assert not all(form in whole for form in short_traces(code, divisor))
    held = _floats(model)
    assert not np.isin(np.round(y, 12), np.round(held, 12)).any()


def _floats(thing: object, depth: int = 8) -> np.ndarray:
    """Every number reachable from an object."""
    if depth == 0:
        return np.empty(0)
    if isinstance(thing, np.ndarray):
        return thing.astype(float).ravel() if thing.dtype.kind in "fiu" else np.empty(0)
    if isinstance(thing, float):
        return np.array([thing])
    if isinstance(thing, dict):
        parts = thing.values()
    elif isinstance(thing, list | tuple):
        parts = thing
    elif hasattr(thing, "__dict__"):
        parts = vars(thing).values()
    else:
        return np.empty(0)
    found = [_floats(part, depth - 1) for part in parts]
    return np.concatenate(found) if found else np.empty(0)


def test_a_failure_after_the_draw_quotes_nothing(monkeypatch):
    def fail(*_args, **_kwargs):
        raise RuntimeError("no room left")

    monkeypatch.setattr("privgp.release.learn.learn", fail)
    model = PrivateGPRegressor(y_bounds=(-2, 2))
    with pytest.raises(RuntimeError) as caught:
        model.fit(np.arange(5.0)[:, None], [*SENTINELS, 0.0, 0.0])
    assert "1.23" not in str(caught.value)
    assert model.guarantee_.epsilon == 1.0, "what was spent is on record"
