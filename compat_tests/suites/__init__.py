"""Other projects' integration tests with brokers of `kafkacompat.testing` in place of their own, see docs/testing/suites.md."""
