"""Are our messages those of Kafka? ``python -m compat_tests.conformance`` asks at length; `make test` asks briefly."""
