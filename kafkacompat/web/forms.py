"""What browsers send: names in addresses, cookies and forms, each checked before anything is done."""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from twisted.web.server import Request

from kafkacompat.monitoring.administration.answers import HttpError
from kafkacompat.monitoring.administration.pages import read_query
from kafkacompat.web.rendering import build_link

MAX_FORM_BYTES = 8 * 1024
MAX_FIELDS = 10
FORM = b"application/x-www-form-urlencoded"


def check_host(header: str, hosts: frozenset[str]) -> None:
    """Raise HttpError 403 unless a page without a login was opened by an address, or by a name of this broker.

    Otherwise another site could let its own name lead to this broker, and read the page in the browser of a visitor.
    """
    try:
        host = (urlsplit(f"//{header}").hostname or "").rstrip(".")
    except ValueError:
        host = ""
    if host in hosts or host == "localhost":
        return
    try:
        ipaddress.ip_address(host)
    except ValueError:
        shown = f"the name {host[:100]!r} is not known to this broker"
        raise HttpError(403, f"{shown}: open the page by an IP address, or let users log in") from None


def check_same_origin(request: Request) -> None:
    """Raise HttpError 403 for a form that a page of another site sends."""
    site, origin = request.getHeader("sec-fetch-site"), request.getHeader("origin")
    if site is not None:
        # Browsers send it to localhost and by TLS, and no script can; a proxy may replace Host.
        is_own = site in ("same-origin", "none")
    else:
        is_own = origin is None or origin.partition("://")[2] == request.getHeader("host")
    if not is_own:
        raise HttpError(403, "the form comes from another site")


def read_cookie(request: Request, name: str) -> str:
    """Return the value of a cookie; "" if there is none."""
    return (request.getCookie(name.encode()) or b"").decode("ascii", "replace")


def read_form(request: Any) -> dict[str, str]:
    """Return the first value of each field of a form; raises HttpError 400, 413 and 415."""
    kind = (request.getHeader(b"content-type") or b"").partition(b";")[0].strip().lower()
    if kind != FORM:
        raise HttpError(415, "the body is no form")
    content = request.content.getvalue()
    if request.is_too_large or len(content) > MAX_FORM_BYTES:
        raise HttpError(413, f"the form has more than {MAX_FORM_BYTES} bytes")
    try:
        fields = parse_qs(content.decode("ascii"), max_num_fields=MAX_FIELDS, errors="replace")
    except ValueError:
        raise HttpError(400, "the form is not valid") from None
    return {name: values[0] for name, values in fields.items()}


def check_target(target: str) -> str:
    """Return where a login leads to: a page below /ui, the first one if *target* is none."""
    is_own = target == "/ui" or target.startswith(("/ui/", "/ui?"))
    return target if is_own and target.isascii() and target.isprintable() and "\\" not in target else build_link(())


def read_target(request: Request) -> str:
    return read_query(request.args or {}).get("to", "")
