"""Passwords of users that commands create."""

from __future__ import annotations

import hashlib
import secrets
import sys

import click

from kafkacompat.security.sasl.scram import make_salt
from kafkacompat.security.scram import ScramMechanism


def ask_password(subject: str) -> str:
    """Ask at a terminal, or read a line of standard input: a password on the command line shows in lists of processes."""
    if sys.stdin.isatty():
        password: str = click.prompt(f"Password for {subject}", hide_input=True, confirmation_prompt=True, err=True)
        return password
    return sys.stdin.readline().rstrip("\r\n")


def salt_password(password: str, mechanism: ScramMechanism, iterations: int) -> tuple[bytes, bytes]:
    """Return a new salt and the salted password."""
    salt = make_salt(secrets.token_bytes(64))
    return salt, hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)
