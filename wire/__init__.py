"""Bytes to messages and back, without a socket, a clock or files."""
