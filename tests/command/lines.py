"""A line that works for every command, and values that no parameter should take."""

from __future__ import annotations

BUDGET = {"--bounds": "0 5000", "--epsilon": "1", "--delta": "1e-5"}
COLUMNS = {"--inputs": "age", "--output": "cost"}
LEDGER = {"--ledger": "sqlite:///l.db"}
KERNEL = {"--kernel": "1e6*matern12(20)+white(4e6)"}
DOMAIN = {"--domain": "age=18:90"}
PATHS = {**DOMAIN, **BUDGET, "--kernel": "1e6*matern12(20)"}
QUICK_ATTACK = {"--shadows": "100", "--draws": "100", "--seed": "1"}

# A line that works for each command. Words without dashes are arguments, in order.
GOOD: dict[str, dict[str, str]] = {
    "bounds": {"data": "v.csv", "--output": "cost", "--epsilon": "1", "--out": "new.json"},
    "plan": {
        "data": "v.csv", "--inputs": "age", **BUDGET, "--hyperparameters": "fixed",
        "--out": "new.plan",
    },
    "release": {
        "data": "v.csv", **COLUMNS, **BUDGET, "--hyperparameters": "fixed", "--out": "new.privgp"
    },
    "update": {"release": "v.privgp", "data": "one.csv", "--output": "cost", "--out": "new.privgp"},
    "predict": {"release": "v.privgp", "data": "v.csv", "--out": "new.csv"},
    "inspect": {"file": "v.privgp"},
    "certificate": {"file": "v.privgp", "--out": "new.html"},
    "demo": {"--out": "new"},
    "serve": {"--data": "new"},
    "audit trade-off": {
        "data": "v.csv", "--inputs": "age", **BUDGET, "--targets": "age=40:40:1",
        "--reconstruct": "unbiased", "--draws": "100",
    },
    "audit membership": {"--noise-variance": "1", **QUICK_ATTACK},
    "function create": {"data": "v.csv", **COLUMNS, **BUDGET, **KERNEL, "--out": "new.private-state"},
    "function ask": {"state": "f.private-state", "data": "v.csv", "--out": "new.csv"},
    "function inspect": {"state": "f.private-state"},
    "ledger open": {
        "--ledger": "sqlite:///new.db", "--dataset": "people", "--epsilon": "1", "--delta": "1e-5"
    },
    "ledger show": {**LEDGER, "--dataset": "people"},
    "ledger verify": LEDGER,
    "ledger export": {**LEDGER, "--out": "new.json"},
    "paths calibrate": {"--rows": "24", **PATHS},
    "paths tune": {
        "--rows": "24", "--domain": "age=18:90", **BUDGET, "--kernel": "1e6*matern32(20)+white(4e6)",
        "--task": "mean", "--draws": "1",
    },
    "paths create": {"data": "v.csv", **COLUMNS, **PATHS, "--out": "new.private-state"},
    "paths release": {"state": "p.private-state", "points": "age=20:80:3", "--out": "new.csv"},
    "paths excursion": {
        "state": "p.private-state", "points": "age=20:80:3", "--threshold": "9", "--out": "new.csv"
    },
    "paths inspect": {"state": "p.private-state"},
    "search grid": {
        "data": "v.csv", **COLUMNS, **BUDGET, "--lengthscales": "5,20", "--out": "new.privgp"
    },
    "search bayes": {
        "--train": "v.csv", "--validation": "v.csv", **COLUMNS, "--task": "regression",
        "--loss-bounds": "0 9e6", "--space": "C=1:10", "--epsilon": "1", "--delta": "1e-5",
        "--steps": "1", "--out": "new.json",
    },
}  # fmt: skip
LONG = {"demo", "serve"}  # its good line is run elsewhere

NUMBER = ("", "nonsense", "nan", "inf")
POSITIVE = (*NUMBER, "0", "-1")
COUNT = (*POSITIVE, "1.5", "1e99")
CHOICE = ("", "nonsense")
PAIR = ("1 0", "1 1", "nan 1", "0 inf", "a b")
FILES = ("", "nonsense", "none{}", "folder{}", "empty{}", "broken{}", "cut{}", "v.txt")
TABLE = (
    *(name.format(".csv") for name in FILES if "cut" not in name),
    "header.csv", "ragged.csv", "no-age.csv", "text-age.csv", "nan-age.csv", "inf-age.csv",
    "none.parquet", "folder.parquet", "empty.parquet", "broken.parquet", "v.csv/v.csv",
)  # fmt: skip
OUTPUT_TABLE = ("no-cost.csv", "text-cost.csv", "nan-cost.csv", "inf-cost.csv")
RELEASE = (*(name.format(".privgp") for name in FILES), "other.privgp", "v.csv")
PLAN = (*(name.format(".plan") for name in FILES), "other.plan", "v.csv", "v.privgp")
STATE = (*(name.format(".private-state") for name in FILES), "v.privgp", "other.private-state")
NEW = ("", "nonsense", "taken{}", "folder{}", "nowhere/new{}", "v.csv/new{}", "new.zip", "\0{}")
PICTURE = tuple(name.format(".png") for name in NEW)
GRID = ("age=0:90", "age=9:0:3", "age=0:90:0", "age=0:nan:3", "bmi=0:1:2", "age=0:1:1e9", "age=")
TEXT_KERNEL = (
    "", "nonsense", "cubic(1)", "rbf(", "rbf(0)", "rbf(nan)", "rbf(1,2,3)", "white(1)", "broken.csv"
)  # fmt: skip
RANGES = (
    "",
    "nonsense",
    "age=1",
    "age=9:1",
    "age=1:1",
    "age=nan:1",
    "age=0:inf",
    "bmi=1:2,age=1:2",
)

COLUMN_NAMES = ("", "nonsense", "age,", "age,age")
JSON = (
    "",
    "nonsense",
    "none.json",
    "folder.json",
    "empty.json",
    "broken.json",
    "v.csv",
    "list.json",
)

BAD: dict[str, tuple[str, ...]] = {
    "data": TABLE, "points": (*TABLE, *GRID), "--train": TABLE, "--validation": TABLE,
    "--targets": (*TABLE, *GRID), "release": RELEASE, "file": (*RELEASE, *PLAN[:-2]), "state": STATE, "--plan": PLAN,
    "--out": NEW, "--plot": PICTURE, "--certificate": tuple(n.format(".html") for n in NEW),
    "--page": tuple(n.format(".html") for n in NEW), "--label": ("", "nonsense"),
    "--inputs": ("", "nonsense", "age,", "age,age"), "--output": ("", "nonsense", "age"),
    "--groups": ("", "nonsense"), "--bounds": (*PAIR, "0", "0,3000"), "--epsilon": (*POSITIVE, "1e5"),
    "--for-error": POSITIVE, "--shares": ("", "nonsense", "1,2", "0,1"),
    "--delta": (*POSITIVE, "1", "2"), "--domain": RANGES, "--x-bounds": (*PAIR[:-1], "a:b", "1", ""),
    "--kernel": TEXT_KERNEL, "--noise-variance": POSITIVE, "--noise-std": (*POSITIVE, "1,,2"),
    "--lengthscales": (*POSITIVE, "1,,2", "1:2"), "--inducing": COUNT, "--rows": COUNT,
    "--folds": (*COUNT, "1"), "--blocks": (*COUNT, "1"), "--steps": COUNT, "--n": COUNT, "--draws": COUNT, "--shadows": COUNT,
    "--n-paths": COUNT, "--max-points": COUNT, "--paths": ("", "nonsense", "nan", "0", "-1", "1.5"),
    "--seed": ("", "nonsense", "nan", "inf", "-1", "1.5", "1e99"), "--record": ("nan 1", "0 inf", "a b"),
    "--label-noise": (*NUMBER, "-1", "1"), "--failure-probability": (*POSITIVE, "1"),
    "--noise-scale": POSITIVE, "--selection-share": (*POSITIVE, "1"), "--threshold": NUMBER,
    "--vote": (*NUMBER, "-1", "2"), "--coverage": (*POSITIVE, "1", "90"), "--smoothing": POSITIVE, "--extra-noise": (*NUMBER, "-1", "1e99"),
    "--dominance": POSITIVE, "--loss-bounds": PAIR, "--state": ("folder", "nowhere/s", "v.csv", "taken.json", "\0"),
    "--space": ("", "nonsense", "C=", "C=2:1", "C=nan:1", "C=0:1:log", "D=1:2", "C=1:2,C=1:2"),
    "--protect": CHOICE, "--objective": CHOICE, "--reconstruct": CHOICE, "--mechanism": CHOICE, "--residuals": CHOICE,
    "--hyperparameters": CHOICE, "--law": CHOICE, "--sensitivity": CHOICE, "--by": CHOICE,
    "--method": CHOICE, "--estimator": CHOICE, "--task": CHOICE, "--loss": CHOICE,
    "--acquisition": CHOICE, "--likelihood": CHOICE, "--exposure": ("", "nonsense", "cost"), "--weights": ("", "nonsense", "cost"),
    "--max-change": POSITIVE, "--max-weight": POSITIVE, "--most-rows": COUNT, "--scheduler": ("", "nonsense", "host:8786"),
    "--dates": COLUMN_NAMES, "--booleans": COLUMN_NAMES, "--categories": (*COLUMN_NAMES, "age=", "age=a||b", "age=a|a"),
    "--places": (*COLUMN_NAMES, "age"), "--crs": ("EPSG:4326",),  # for places alone
    "--periodic": (*COLUMN_NAMES, "age", "age=", "age=0", "age=-1", "age=nan", "age=inf"),
    "--missing": CHOICE, "--delimiter": ("", ";;", "é", '"'), "--encoding": ("", "nonsense"),
    "--numbers": COLUMN_NAMES, "--date-format": ("", "nonsense"), "--grid": (*COUNT, "1e9"),
    "--grid-bounds": ("", "nonsense", "age=", "age=1", "age=9:1", "bmi=1:2", "age=1:2,age=1:2", "age=a:b"),
    "--contours": (*COUNT, "5"),  # for .geojson alone
    "--average": ("", "nonsense", "by=", "by=nonsense", "by=age,by=age", "of=age", "by=age,weights="),
    "--areas": (*(name.format(".geojson") for name in FILES), "v.csv"),
    "--share": (*POSITIVE, "1", "95"), "--low": (*NUMBER, "1e10"),
    "--smallest": (*POSITIVE, "1e10", "1e-40"), "--largest": (*POSITIVE, "0.001"),
    "--holder": JSON, "--name": ("", "a" * 201), "--units": ("", "a" * 201),
    "--link": CHOICE, "--prevalence": (*POSITIVE, "1", "5"), "--classes": ("", "one", "a,a", "a,,b"),
    "--dataset": ("", "nonsense"), "--head": ("", "nonsense"),
    "--key": ("", "nonsense", "v.csv", "\0"),
    "--ledger": ("", "nonsense", "v.csv", "sqlite://", "sqlite:///none.db", "sqlite:///v.csv", "sqlite:///nowhere/l.db"),
    "--reserve": (*NUMBER, "-1", "2"),
    "--settings": ("", "nonsense", "v.csv", "\0"),
    "--host": ("",), "--data": ("v.csv", "v.csv/new", "\0"), "--port": (*COUNT, "70000"),
}  # fmt: skip
# Where a parameter of the same name is another thing.
OWN: dict[tuple[str, str], tuple[str, ...]] = {
    ("bounds", "data"): tuple(
        name for name in TABLE if "age" not in name
    ),  # the inputs are not read
    ("bounds", "--output"): ("", "nonsense"),
    ("plan", "--output"): ("", "age"),  # it is not looked for
    # 0 is for Laplace noise
    **{
        (command, "--delta"): (*NUMBER, "-1", "-0.1", "1", "2")
        for command in ("plan", "release", "search grid")
    },
    ("audit membership", "--domain"): PAIR,
    ("audit membership", "--kernel"): tuple(k for k in TEXT_KERNEL if k != "rbf(1,2,3)"),
    # the grid's lengthscales take the place of those given
    ("search grid", "--kernel"): tuple(k for k in TEXT_KERNEL if k != "rbf(1,2,3)"),
    ("serve", "--ledger"): ("", "nonsense", "v.csv", "sqlite://", "sqlite:///v.csv"),
    ("demo", "--out"): ("nowhere/new", "v.csv/new", "\0"),
    ("ledger open", "--dataset"): ("", "a" * 201),
    ("ledger open", "--delta"): (*NUMBER, "-1", "1", "2"),
    ("ledger open", "--ledger"): (
        "",
        "nonsense",
        "v.csv",
        "sqlite://",
        "sqlite:///v.csv",
        "sqlite:///nowhere/l.db",
    ),
    ("paths calibrate", "--domain"): tuple(r for r in RANGES if "bmi" not in r),
    ("paths tune", "--domain"): tuple(r for r in RANGES if "bmi" not in r),
}
# What an option needs beside it to mean anything.
BESIDE: dict[tuple[str, str], dict[str, str]] = {
    ("plan", "--x-bounds"): {"--protect": "records"},
    ("release", "--x-bounds"): {"--protect": "records"},
    ("plan", "--exposure"): {"--likelihood": "poisson", "--output": "cost"},
    ("plan", "--weights"): {"--output": "cost"},
    ("release", "--exposure"): {"--likelihood": "poisson"},
    ("function create", "--domain"): {"--protect": "records"},
    ("function create", "--dominance"): {"--sensitivity": "varah"},
    ("paths tune", "--threshold"): {"--task": "excursion"},
    ("search grid", "--classes"): {"--method": "permute-and-flip"},
    ("search grid", "--blocks"): {
        "--method": "permute-and-flip",
        "--protect": "records",
        "--x-bounds": "0 100",
    },
    **{
        (command, option): beside
        for command in (
            "bounds",
            "release",
            "function create",
            "paths create",
            "search grid",
            "search bayes",
        )
        for option, beside in (("--ledger", {"--dataset": "people"}), ("--dataset", LEDGER))
    },
}
