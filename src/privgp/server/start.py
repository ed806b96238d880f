"""Start a server: make its first keys, register the demonstration's dataset, and listen."""

from __future__ import annotations

from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from privgp.server.app import application
from privgp.server.declared import Declared
from privgp.server.settings import Settings
from privgp.server.store.keys import ANALYST, CUSTODIAN

DEMO = "diabetes"
Say = Callable[[str], None]


def prepared(settings: Settings, *, demo: bool, say: Say) -> FastAPI:
    """The application; keys that it made are said once and kept nowhere."""
    made = application(settings)
    store = made.state.service.store
    if demo:
        _register_demo(made, settings)
    if not store.has_custodian():
        say(f"The custodian's key: {store.add_key('first custodian', CUSTODIAN)[1]}")
        if demo:
            say(f"An analyst's key:    {store.add_key('analyst', ANALYST, (DEMO,))[1]}")
        say("Keys are shown this once. Keep them.")
    return made


def listen(made: FastAPI, host: str, port: int) -> None:
    uvicorn.run(made, host=host, port=port, log_level="warning", server_header=False)


def _register_demo(made: FastAPI, settings: Settings) -> None:
    """442 people with diabetes: how their disease progressed is private."""
    import polars as pl
    from sklearn.datasets import load_diabetes

    service = made.state.service
    declared = Declared(
        name=DEMO,
        table="diabetes.csv",
        inputs=("bmi", "bp"),
        output="progression",
        bounds=(25.0, 350.0),
        epsilon=3.0,
        delta=1e-5,
    )
    path = declared.path(settings)
    if path.exists():
        return
    people = load_diabetes(scaled=False)
    table = pl.DataFrame(people.data, schema=list(people.feature_names), orient="row")
    outputs = pl.Series(declared.output, people.target)
    table.select(declared.inputs).with_columns(outputs).write_csv(path)
    service.work.ledger.open(declared.name, declared.epsilon, declared.delta)
    service.store.add_dataset(declared.name, declared.model_dump(mode="json"))
