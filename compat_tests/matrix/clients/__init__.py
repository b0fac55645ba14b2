"""Programs that drive clients, one a client and language; `compat_tests.matrix.driver` says how they talk."""
