"""Tests of what the tests with real clients are made of."""
