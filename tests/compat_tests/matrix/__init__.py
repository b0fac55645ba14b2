"""Tests of the matrix of clients: what it sees, compares and writes."""
