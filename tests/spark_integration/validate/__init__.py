"""The parts of `validate` that need no JVM."""
