"""Why an address cannot be listened on, and what to do about it."""

from __future__ import annotations

import errno
import socket

from kafkacompat.storage.files.os_errors import describe_error

FIRST_UNPRIVILEGED_PORT = 1024

_RESOLUTION = "the name cannot be resolved; add it to DNS or /etc/hosts, or give an IP address"
_NOT_HERE = "this machine has no such address; give one of its own, or none at all to listen on every one"
_NO_FAMILY = "this machine does not support that kind of address; give an IPv4 address"


def explain_bind_failure(host: str, port: int, error: OSError) -> str:
    """Say in one sentence why a listener cannot be bound, with advice that fits; *host* is "" for every address."""
    shown = f"[{host}]" if ":" in host else host or "0.0.0.0"
    return f"cannot listen on {shown}:{port}: {_explain_error(port, error)}"


def _explain_error(port: int, error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return _RESOLUTION
    if error.errno == errno.EADDRINUSE:
        return "another process listens there; stop it, or choose another port"
    if error.errno == errno.EADDRNOTAVAIL:
        return _NOT_HERE
    if error.errno == errno.EAFNOSUPPORT:
        return _NO_FAMILY
    if error.errno in (errno.EACCES, errno.EPERM) and port < FIRST_UNPRIVILEGED_PORT:
        return f"only root may use this port; choose one of {FIRST_UNPRIVILEGED_PORT} or more"
    return f"{describe_error(error)}; choose another address in listeners"
