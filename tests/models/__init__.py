# The one check of scikit-learn that cannot pass, and why.
FITS_AN_INPUT = {
    "check_regressors_no_decision_function": "fits a column of X as y, which is refused"
}
