"""Adds prices to orders, exactly once."""
