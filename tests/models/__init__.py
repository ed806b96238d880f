# The one check of scikit-learn that cannot pass, and why.
FITS_AN_INPUT = {
    "check_regressors_no_decision_function": "fits a column of X as y, which is refused"
}
# Of estimators that take weights, one more.
WEIGHS_ROWS = FITS_AN_INPUT | {
    "check_sample_weight_equivalence_on_dense_data": "gives weights of zero, which are refused, and "
    "compares with repeated rows: other totals, with their own noise"
}
