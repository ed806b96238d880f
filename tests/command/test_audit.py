"""``privgp audit``: attacks from the command line."""

from __future__ import annotations

import json

import pytest

from tests.command.running import assert_refused, run

ONE_TARGET = ["--targets", "x=0.5:0.5:1", "--reconstruct", "unbiased"]
QUICK = ["--shadows", "500", "--draws", "500", "--seed", "1"]


def test_a_sound_mechanism_holds_and_is_drawn(tmp_path):
    picture = tmp_path / "attack.png"
    result = run("audit", "trade-off", *ONE_TARGET, "--draws", "2000", "--plot", picture)
    assert result.code == 0, result
    assert "simulated data only" in result.out
    assert "holds" in result.out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_planted_fault_exits_with_one_and_says_so():
    result = run("audit", "trade-off", *ONE_TARGET, "--draws", "2000", "--noise-scale", "0.5")
    assert result.code == 1
    assert "IS BROKEN" in result.out
    assert result.err == ""


@pytest.mark.parametrize("mechanism", ["outputs", "records", "function"])
def test_every_mechanism_is_attacked(mechanism):
    result = run("audit", "trade-off", "--mechanism", mechanism, "--draws", "100", "--json")
    assert result.code == 0, result
    facts = json.loads(result.out)
    assert facts["holds"] is True
    assert facts["mechanism"] == mechanism
    assert facts["promised_mu"] == pytest.approx(2.4488, abs=1e-3)


@pytest.mark.parametrize("mechanism", ["labels", "counts", "several", "features"])
def test_other_outcomes_are_attacked_and_a_planted_fault_is_found(mechanism):
    asked = ["audit", "trade-off", "--mechanism", mechanism, "--draws", "300", "--json"]
    result = run(*asked)
    assert result.code == 0, result
    assert json.loads(result.out)["promised_mu"] == pytest.approx(2.4488, abs=1e-3)
    assert run(*asked, "--noise-scale", "0.4").code == 1


@pytest.mark.parametrize("mechanism", ["outputs", "records"])
def test_pure_epsilon_is_attacked_where_laplace_noise_is_asked_for(mechanism):
    asked = ["--mechanism", mechanism, "--law", "laplace", "--epsilon", "1.5", "--draws", "2000"]
    result = run("audit", "trade-off", *asked, "--json")
    assert result.code == 0, result
    facts = json.loads(result.out)
    assert facts["holds"] is True
    assert run("audit", "trade-off", *asked, "--noise-scale", "0.4").code == 1


@pytest.mark.parametrize("mechanism", ["paths", "scores", "permute-and-flip", "exponential"])
def test_what_protects_whole_records_is_attacked_without_a_table(mechanism, visits):
    given = ["audit", "trade-off", "--mechanism", mechanism, "--epsilon", "2", "--draws", "1200"]
    result = run(*given, "--json")
    assert result.code == 0, result
    assert json.loads(result.out)["holds"] is True
    table = [visits, "--inputs", "age", "--bounds", "0", "5000"]
    assert_refused(run(*given, *table), "leave DATA out")
    if mechanism == "paths":
        assert_refused(run(*given, "--noise-scale", "0.5"), "--noise-scale")
    else:
        assert run(*given, "--noise-scale", "0.1").code == 1


def test_the_inputs_of_a_table_are_planned_for_and_its_outputs_not_read(visits):
    given = ["audit", "trade-off", visits, "--inputs", "age", "--bounds", "0", "5000"]
    given += ["--targets", "age=40:40:1", "--reconstruct", "unbiased", "--draws", "200"]
    result = run(*given, "--groups", "person", "--json")
    assert result.code == 0, result
    assert json.loads(result.out)["holds"] is True


def test_membership_needs_no_options():
    result = run("audit", "membership", *QUICK)
    assert result.code == 0, result
    assert "members are found" in result.out


def test_membership_holds_its_promise_and_is_drawn(tmp_path):
    picture = tmp_path / "members.svg"
    result = run("audit", "membership", "--noise-variance", "0.1", *QUICK, "--plot", picture)
    assert result.code == 0, result
    assert "Area under the curve" in result.out
    assert "holds" in result.out
    assert "<svg" in picture.read_text()


def test_membership_as_json_is_repeatable():
    given = ["audit", "membership", "--kernel", "4*exp(1) + white(0.4)", "--paths", "3", *QUICK]
    first, second = run(*given, "--json"), run(*given, "--json")
    assert first.code == 0, first
    assert first.out == second.out
    facts = json.loads(first.out)
    assert facts["auc_bounds"][0] < facts["auc"] < facts["auc_bounds"][1]
    assert [t["true_positive_rate"] for t in facts["thresholds"]] != []
    exact = run("audit", "membership", "--noise-variance", "1", "--paths", "inf", *QUICK, "--json")
    assert json.loads(exact.out)["promise"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trade-off", "--inputs", "a"], ["DATA"]),
        (["trade-off", "--groups", "a"], ["DATA"]),
        (["trade-off", "nothing.csv"], ["--inputs"]),
        (["trade-off", "nothing.csv", "--inputs", "a"], ["nothing.csv"]),
        (["trade-off", "nothing.csv", "--inputs", "a", "--mechanism", "records"], ["DATA"]),
        (["trade-off", "nothing.csv", "--inputs", "a", "--mechanism", "features"], ["DATA"]),
        (["trade-off", "--epsilon", "0"], ["epsilon"]),
        (["trade-off", "--delta", "2"], ["delta"]),
        (["trade-off", "--bounds", "1", "0"], ["--bounds"]),
        (["trade-off", "--noise-scale", "nan"], ["--noise-scale"]),
        (["trade-off", "--noise-scale", "0"], ["--noise-scale"]),
        (["trade-off", "--failure-probability", "0"], ["--failure-probability"]),
        (["trade-off", "--draws", "1"], ["draws"]),
        (["trade-off", "--mechanism", "none"], ["mechanism"]),
        (["trade-off", "--kernel", "nonsense"], ["--kernel"]),
        (["trade-off", "--plot", "nowhere/a.png"], ["nowhere"]),
        (["trade-off", "--plot", "a.pdf"], [".png"]),
        (["membership", "--noise-variance", "-1"], ["noise"]),
        (["membership", "--noise-variance", "nan"], ["noise"]),
        (["membership", "--kernel", "white(1)"], ["noise"]),
        (["membership", "--kernel", "exp(1) + white(1)", "--noise-variance", "1"], ["once"]),
        (["membership", "--noise-variance", "1", "--paths", "0"], ["--paths"]),
        (["membership", "--noise-variance", "1", "--paths", "1.5"], ["--paths"]),
        (["membership", "--noise-variance", "1", "--paths", "nan"], ["--paths"]),
        (["membership", "--noise-variance", "1", "--domain", "1", "0"], ["--domain"]),
        (["membership", "--noise-variance", "1", "--record", "inf", "1"], ["--record"]),
        (["membership", "--noise-variance", "1", "--label-noise", "1"], ["--label-noise"]),
        (["membership", "--noise-variance", "1", "--n", "0"], ["--n"]),
        (["membership", "--noise-variance", "1", "--shadows", "5"], ["shadows"]),
        (["membership", "--noise-variance", "1", "--failure-probability", "1"], ["probability"]),
        (["membership", "--noise-variance", "1e-300"], ["noise"]),
    ],
)
def test_bad_input_is_refused_in_one_sentence(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_refused(run("audit", *arguments), *words)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_picture_is_kept(tmp_path):
    picture = tmp_path / "kept.png"
    picture.write_bytes(b"kept")
    assert_refused(run("audit", "membership", "--noise-variance", "1", "--plot", picture), "exists")
    assert picture.read_bytes() == b"kept"
