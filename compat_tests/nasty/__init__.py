"""The consumers of the matrix, and Spark's source, on nasty topics: ``python -m compat_tests.nasty``."""
