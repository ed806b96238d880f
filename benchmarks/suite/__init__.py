"""A public benchmark of private curves and maps: ``python -m benchmarks.suite`` (``make bench-suite``).

Every method in ``methods/`` meets every task at every epsilon. To add one, write one file there that ends
in ``METHODS = (Method(...),)``; nothing else has to change.
"""
