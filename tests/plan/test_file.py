"""A plan survives its file, and a file that is not as it was saved is no plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import privgp
from privgp import PrivateGPClassifier, PrivateGPRegressor, load_plan
from privgp.models.load import DamagedFile
from privgp.plan.plan import CODEC, save_plan
from privgp.plan.strategy import noise_of
from privgp.release.certificate import certificate
from privgp.storage.archive import PLAN, dump, pack, parse, unpack
from tests.plans import with_part

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(40, 2))
Y = np.sin(4 * X[:, 0]) + 0.1 * RNG.standard_normal(40)
PEOPLE = np.repeat(np.arange(10), 4)
POINTS = [[0.2, 0.3], [0.7, 0.1]]
RECORDS = {"protect": "records", "x_bounds": ((0, 1), (0, 1))}

KINDS: dict[str, tuple[dict[str, Any], Any]] = {
    "gaussian": ({"mechanism": "gaussian"}, None),
    "laplace": ({"mechanism": "laplace", "targets": POINTS}, None),
    "pure": ({"delta": 0}, None),
    "people": ({"mechanism": "gaussian", "hyperparameters": "learned"}, PEOPLE),
    "people, laplace": ({"mechanism": "laplace"}, PEOPLE),
    "default kernel": ({"kernel": None, "hyperparameters": "learned"}, None),
    "white kernel": ({"kernel": RBF([0.3, 0.4]) + WhiteKernel(0.1)}, None),
    "two stages": ({"residuals": "always", "hyperparameters": "learned"}, None),
    "two stages of people": ({"residuals": "always", "mechanism": "gaussian"}, PEOPLE),
    "inducing": ({"inducing": 12}, None),
    "inducing points": ({"inducing": POINTS}, None),
    "unbiased": ({"reconstruct": "unbiased", "targets": POINTS}, None),
    "unbiased, inducing": ({"reconstruct": "unbiased", "inducing": 12}, None),
    "logdet": ({"objective": "logdet", "targets": POINTS}, None),
    "records": ({**RECORDS, "mechanism": "gaussian", "hyperparameters": "learned"}, None),
    "records, laplace": ({**RECORDS, "mechanism": "laplace", "kernel": None}, None),
    "records, either": (RECORDS, None),
}


def regressor(**parameters: Any) -> PrivateGPRegressor:
    fixed = {"kernel": RBF(0.3), "hyperparameters": "fixed"}
    given = {"y_bounds": (-2, 2), "random_state": 3, **fixed}
    return PrivateGPRegressor(**{**given, **parameters})


@pytest.fixture(scope="module", params=KINDS)
def kept(request: Any, tmp_path_factory: Any) -> tuple[PrivateGPRegressor, Any, Any, Path]:
    """A model, its groups and plan, and the file of the plan."""
    parameters, people = KINDS[request.param]
    model, path = regressor(**parameters), tmp_path_factory.mktemp("plan") / "some.plan"
    plan = model.plan(X, groups=people)
    save_plan(plan, path)
    return model, people, plan, path


def forged(path: Path, change: Any) -> Path:
    """The file with its JSON changed and all hashes computed anew."""
    members = unpack(path.read_bytes(), PLAN)
    tree = parse(members["plan.json"])
    change(tree)
    other = path.with_name("forged.plan")
    other.write_bytes(pack({**members, "plan.json": dump(tree)}, PLAN))
    return other


def test_a_loaded_plan_says_what_the_saved_one_said(kept: Any) -> None:
    _, _, plan, path = kept
    again = load_plan(path)
    assert type(again) is type(plan)
    assert again.hash == plan.hash
    assert again.noise == plan.noise
    assert again.describe() == plan.describe()
    assert again.gap == plan.gap
    assert again.expected_error(0.5) == plan.expected_error(0.5)
    assert CODEC.encode(again) == CODEC.encode(plan)


def test_a_fit_takes_a_loaded_plan_like_the_saved_one(kept: Any) -> None:
    model, people, plan, path = kept
    model.hyperparameters = plan.made_for.parameters.hyperparameters
    one = model.fit(X, Y, groups=people, plan=plan)
    released = one.measurements_[0].values.tolist(), certificate(one)["plan"], one.guarantee_
    two = model.fit(X, Y, groups=people, plan=load_plan(path))
    assert released == (
        two.measurements_[0].values.tolist(),
        certificate(two)["plan"],
        two.guarantee_,
    )
    assert released[1] == load_plan(path).hash


def test_its_parameters_make_the_model_that_takes_it(kept: Any) -> None:
    _, people, _, path = kept
    again = load_plan(path)
    other = PrivateGPRegressor(**vars(again.made_for.parameters), random_state=3)
    assert other.fit(X, Y, groups=people, plan=again).plan_ == again


def test_a_changed_byte_is_damage(kept: Any, tmp_path: Path) -> None:
    data = bytearray(kept[3].read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "bad.plan").write_bytes(data)
    with pytest.raises(DamagedFile, match="cannot be loaded"):
        load_plan(tmp_path / "bad.plan")


@pytest.mark.parametrize(
    "name", ["epsilon", "delta", "y_bounds", "targets", "strategy", "priors", "made_for", "noise"]
)
def test_parts_of_other_types_are_refused(kept: Any, name: str) -> None:
    for wrong in (None, "x", -1.0, [], {"type": "Prior"}, {"zeros": [3]}):
        with pytest.raises(DamagedFile, match="cannot be loaded"):
            load_plan(forged(kept[3], lambda tree, wrong=wrong: tree.update({name: wrong})))


def test_another_budget_than_the_noise_is_for_is_refused(kept: Any) -> None:
    def smaller(tree: Any) -> None:
        tree["epsilon"] = tree["made_for"]["parameters"]["epsilon"] = 0.5

    with pytest.raises(DamagedFile, match="parts do not make a plan"):
        load_plan(forged(kept[3], smaller))


def test_another_kind_than_was_asked_for_is_refused(kept: Any) -> None:
    asked = kept[2].made_for.parameters
    other = "records" if asked.protect == "outputs" else "outputs"

    def change(tree: Any, **parameters: Any) -> None:
        tree["made_for"]["parameters"].update(parameters)

    with pytest.raises(DamagedFile, match="parts do not make a plan"):
        load_plan(forged(kept[3], lambda tree: change(tree, protect=other)))
    if asked.protect == "outputs":  # fewer inputs than carry the function
        with pytest.raises(DamagedFile, match="cannot be loaded"):
            load_plan(forged(kept[3], lambda tree: change(tree, inducing=3)))


def test_less_noise_than_the_budget_asks_for_is_refused(kept: Any) -> None:
    def quieter(tree: Any) -> None:
        name = "std" if "std" in tree["noise"] else "scale"
        tree["noise"][name] *= 0.999

    with pytest.raises(DamagedFile, match="parts do not make a plan"):
        load_plan(forged(kept[3], quieter))


def test_the_lattice_of_the_noise_is_computed_anew(kept: Any) -> None:
    def coarser(tree: Any) -> None:
        tree["noise"]["exponent"] += 60

    assert load_plan(forged(kept[3], coarser)).noise == kept[2].noise


@pytest.mark.parametrize("kind", ["gaussian", "laplace", "people", "people, laplace"])
def test_weights_that_the_sensitivity_does_not_cover_are_refused(kind: str, tmp_path: Path) -> None:
    parameters, people = KINDS[kind]
    plan = regressor(**parameters).plan(X, groups=people)
    strategy = plan.strategy
    bad = [
        replace(strategy, row_weights=-strategy.row_weights),
        replace(strategy, row_weights=np.full(40, 1.01)),
        replace(strategy, energy_shares=strategy.energy_shares + 1.0),
        replace(strategy, energy_shares=-strategy.energy_shares),
        replace(strategy, energy_weight=-1.0),
        replace(strategy, index=strategy.index + 1),
        replace(strategy, index=strategy.index - 1),
        replace(strategy, index=strategy.index[:-1]),
    ]
    if people is not None:
        bad += [
            replace(strategy, row_weights=np.ones(40)),  # a person's rows weigh 4, with noise for 1
            replace(strategy, row_weights=np.where(np.arange(40) == 7, 1.0, strategy.row_weights)),
            replace(strategy, people=strategy.people - 1),
            replace(strategy, people=strategy.people + 40),
        ]
    for each in bad:
        (tmp_path / "bad.plan").write_bytes(
            pack(CODEC.encode(with_part(plan, strategy=each)), PLAN)
        )
        with pytest.raises(DamagedFile, match="cannot be loaded"):
            load_plan(tmp_path / "bad.plan")


@pytest.mark.parametrize("kind", ["people", "people, laplace"])
def test_larger_weights_in_a_file_are_hidden_by_more_noise(kind: str, tmp_path: Path) -> None:
    """Rows of one person may weigh differently: the sensitivity is that of the weights in the file."""
    parameters, people = KINDS[kind]
    plan, path = regressor(**parameters).plan(X, groups=people), tmp_path / "forged.plan"
    strategy, seventh = plan.strategy, np.arange(40) == 7

    def load_with(weights: Any, noise: Any) -> Any:
        other = with_part(plan, strategy=replace(strategy, row_weights=weights), noise=noise)
        path.write_bytes(pack(CODEC.encode(other), PLAN))
        return load_plan(path)

    larger = np.where(seventh, 1.0, strategy.row_weights)
    needed = noise_of(replace(strategy, row_weights=larger), plan.epsilon, plan.delta)
    with pytest.raises(DamagedFile, match="parts do not make a plan"):
        load_with(larger, plan.noise)
    loaded = load_with(larger, needed)
    # the other three rows of the person and this one, in one direction
    B = strategy.matrix[:, strategy.index] * larger
    moved = 2.0 * np.linalg.norm(B[:, 4:8].sum(axis=1), 1 if "laplace" in kind else 2)
    assert loaded.strategy.sensitivity() >= moved
    assert loaded.strategy.sensitivity() > 1.5 * strategy.sensitivity()
    ratio = loaded.strategy.sensitivity() / strategy.sensitivity()
    assert loaded.noise.std == pytest.approx(ratio * plan.noise.std, rel=1e-6)
    smaller = load_with(np.where(seventh, 0.5, 1.0) * strategy.row_weights, plan.noise)
    assert smaller.strategy.sensitivity() == strategy.sensitivity()  # that of another person
    assert smaller.noise.std == pytest.approx(plan.noise.std)


@pytest.mark.parametrize("kind", ["records", "records, laplace"])
def test_bins_that_the_sensitivity_does_not_cover_are_refused(kind: str, tmp_path: Path) -> None:
    plan = regressor(**KINDS[kind][0]).plan(X)
    bins = plan.strategy
    for each in (
        replace(bins, energy_weight=-1.0),
        replace(bins, energy_weight=1.5),
        replace(bins, low=bins.high),
        replace(bins, low=bins.low - 1.0),
        replace(bins, shape=(bins.shape[0] + 1, *bins.shape[1:])),
        replace(bins, shape=tuple(-n for n in bins.shape)),
        replace(bins, rows=0),
    ):
        (tmp_path / "bad.plan").write_bytes(
            pack(CODEC.encode(with_part(plan, strategy=each)), PLAN)
        )
        with pytest.raises(DamagedFile, match="cannot be loaded"):
            load_plan(tmp_path / "bad.plan")


def test_fractions_are_no_places(tmp_path: Path) -> None:
    plan = regressor(mechanism="gaussian").plan(X)
    half = with_part(plan, strategy=replace(plan.strategy, index=plan.strategy.index + 0.5))
    (tmp_path / "bad.plan").write_bytes(pack(CODEC.encode(half), PLAN))
    with pytest.raises(DamagedFile, match="does not hold whole numbers"):
        load_plan(tmp_path / "bad.plan")


def test_a_forged_fingerprint_does_not_change_who_is_protected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = regressor(mechanism="gaussian")
    for plan, X_other, people in (
        (model.plan(X), X, PEOPLE),
        (model.plan(X, groups=PEOPLE), X, None),
        (regressor(mechanism="gaussian", epsilon=2.0).plan(X), X, None),
        (regressor(mechanism="gaussian", y_bounds=(0, 1)).plan(X), X, None),
        (model.plan(X[:30]), X, None),
    ):
        save_plan(plan, tmp_path / "some.plan", overwrite=True)
        with monkeypatch.context() as patch:  # anyone who writes the file knows all that is hashed
            patch.setattr("privgp.models.rows.fit._of", lambda *_: plan.fingerprint)  # noqa: B023
            patch.setattr("privgp.vault.measure.add_noise", lambda *_: pytest.fail("noise drawn"))
            with pytest.raises(ValueError, match="plan was made for other"):
                model.fit(X_other, Y, groups=people, plan=load_plan(tmp_path / "some.plan"))


def test_the_hash_is_of_all_that_is_planned(tmp_path: Path) -> None:
    plan = regressor(mechanism="gaussian").plan(X)
    others = [
        regressor(mechanism="gaussian", random_state=8).plan(X).hash,  # a seed is not planned
        regressor(mechanism="laplace").plan(X).hash,
        regressor(mechanism="gaussian", targets=POINTS).plan(X).hash,
        regressor(mechanism="gaussian", y_bounds=(-2, 2.5)).plan(X).hash,
        regressor(mechanism="gaussian").plan(X + 1e-9).hash,
        with_part(plan, functionals=replace(plan.functionals, energy_total=1.0)).hash,
        replace(plan, made_for=replace(plan.made_for, names=("a", "b"))).hash,
    ]
    assert others[0] == plan.hash
    assert len({plan.hash, *others}) == len(others)


def test_a_fit_without_a_plan_certifies_the_plan_it_makes() -> None:
    polars = pytest.importorskip("polars")
    table = polars.DataFrame(X, schema=["a", "b"])
    for parameters in ({}, {"inducing": 12}, RECORDS):
        model = regressor(**parameters)
        plan = model.plan(table)
        assert plan.made_for.names == ("a", "b")
        assert certificate(model.fit(table, Y))["plan"] == plan.hash


def test_files_are_replaced_only_if_asked(tmp_path: Path) -> None:
    plan = regressor().plan(X)
    with pytest.warns(UserWarning, match="contains the inputs"):
        plan.save(tmp_path / "some.plan")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        plan.save(tmp_path / "some.plan")
    with pytest.raises(ValueError, match=r"must end in '\.plan'"):
        plan.save(tmp_path / "some.privgp")
    regressor(**RECORDS).plan(40).save(tmp_path / "some.plan", overwrite=True)


def test_a_plan_is_no_release_and_a_release_no_plan(tmp_path: Path) -> None:
    model = regressor(**RECORDS, hyperparameters="fixed")
    plan = model.plan(X)
    plan.save(tmp_path / "some.plan")
    model.fit(X, Y, plan=plan).save(tmp_path / "some.privgp")
    for load, name in ((privgp.load, "some.plan"), (load_plan, "some.privgp")):
        with pytest.raises(DamagedFile, match="cannot be loaded: it is not a"):
            load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        load_plan(tmp_path / "none.plan")


def test_a_plan_that_no_model_made_is_not_saved(tmp_path: Path) -> None:
    plan = replace(regressor().plan(X), made_for=None)
    with pytest.raises(ValueError, match="a model made"):
        plan.save(tmp_path / "some.plan")


@pytest.mark.parametrize("classes", [4, 9])
def test_sums_of_other_classes_than_were_declared_are_refused(classes: int) -> None:
    model = PrivateGPClassifier(classes=[0, 1, 2], mechanism="gaussian", hyperparameters="fixed")
    plan = model.plan(X)
    CODEC.decode(CODEC.encode(plan)).check_parts()
    other = replace(plan.strategy, classes=classes)
    forged = with_part(plan, strategy=other, noise=noise_of(other, plan.epsilon, plan.delta))
    with pytest.raises(ValueError, match="belong"):
        CODEC.decode(CODEC.encode(forged)).check_parts()


@pytest.mark.parametrize("alone", [True, False])
def test_a_plan_with_inducing_inputs_of_an_earlier_version_is_refused_with_the_reason(
    alone: bool, tmp_path: Path
) -> None:
    """Files of version 0.2 hold the plan of one outcome alone; later ones hold its part."""
    plan = regressor(inducing=5).plan(X)
    with pytest.warns(UserWarning, match="contains the inputs"):
        plan.save(tmp_path / "new.plan")
    members = unpack((tmp_path / "new.plan").read_bytes(), PLAN)
    tree: Any = parse(members["plan.json"])
    tree["parts"][0]["strategy"]["type"] = "StreamedSums"
    old = {**tree["parts"][0], "type": "Plan"} if alone else tree
    (tmp_path / "old.plan").write_bytes(pack({**members, "plan.json": dump(old)}, PLAN))
    with pytest.raises(DamagedFile, match=r"an earlier version made it .*: plan again"):
        load_plan(tmp_path / "old.plan")
