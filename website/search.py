"""What the search of the site finds first, and other words that it finds pages by."""

from __future__ import annotations

from typing import Any

# Weights by the beginning of an address; the first that fits counts.
WEIGHTS = {
    "project/": 0.2,
    "reference/": 0.4,
    "proofs/": 0.5,
    "papers": 0.5,
    "symbols": 0.5,
    "suite": 0.7,
    "": 2.0,
}
# Words that readers use and the pages do not.
SYNONYMS = {
    "analysts": "consumer, download, read a file, query, notebook, plot, table of predictions, district",
    "audits": "membership inference, red team, empirical privacy, canary",
    "averages": "aggregate, choropleth, polygons, regions, zones, contrast, simultaneous band",
    "certificate": "verify, sound, report, attestation, compliance, model card, disclosure",
    "choosing": "privacy parameters, privacy loss, clipping, range, epsilon value",
    "citizens": "patient, data subject, my data, my value, find out, learn my waiting time, re-identify, opt out, "
    "complaint",
    "classes": "classification, categorical outcome, logistic, probability, diagnosis",
    "counts": "Poisson, incidence, prevalence, rate, epidemiology",
    "custodians": "data owner, controller, curator, publish, quick start, hospital, semicolon, decimal comma",
    "density": "heat map, point pattern, KDE, intensity, locations",
    "dpia": "GDPR, legal, privacy impact assessment, anonymisation, compliance, regulator",
    "engine": "big data, parquet, Dask, Spark, SQL, DuckDB, PostgreSQL, cluster, scale",
    "error-bars": "error bars, confidence interval, credible interval, uncertainty, calibration",
    "ledger": "accountant, accounting, odometer, filter, spend, quota",
    "many-rows": "user-level privacy, individuals, entity, repeated visits, longitudinal",
    "private-inputs": "covariates, features, record-level privacy, location privacy, addresses",
    "server": "API, REST, deploy, Docker, nginx, login, OpenID",
    "several-outputs": "multi-output, multivariate, multitask",
    "several-releases": "composition, accounting, repeat, publish again",
    "survey-weights": "sampling weights, stratified, design weights",
    "tables": "CSV, semicolon, delimiter, decimal comma, empty cells, Excel, dates, NaN, missing data, imputation, GIS, latitude, longitude",
    "reviewers": "verify a certificate, check, audit, is it sound, approve, sign off",
    "troubleshooting": "error message, exception, help, does not work, failed",
    "updates": "incremental, streaming, monthly, append, new data",
}
HIDDEN = "\n\n<p hidden>Search words: {words}.</p>\n"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Weigh a page by its section, and add the words that it is searched by."""
    address = page.file.src_uri
    weight = next(value for begin, value in WEIGHTS.items() if address.startswith(begin))
    page.meta.setdefault("search", {}).setdefault("boost", weight)
    words = SYNONYMS.get(address.removesuffix(".md"))
    return markdown if words is None else markdown + HIDDEN.format(words=words)
