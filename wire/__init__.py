"""Bytes to messages and back: no socket, no clock, no files."""
