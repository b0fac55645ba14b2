"""What holds for all tests of `tests/`."""

from tests.collecting import pytest_collection

__all__ = ["pytest_collection"]
