"""/ui on the HTTP listener: who may see it, and answers that no browser can be led astray by.

A user logs in by a token, or by the name and password of a SCRAM user, as for /v1; users of instances see their instance. Where the
broker has no users there is no login, and the page opens only under names that no other site can take.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from twisted.web.resource import Resource
from twisted.web.server import Request

from kafkacompat.monitoring.administration.answers import HttpError
from kafkacompat.monitoring.administration.pages import read_query, write_later
from kafkacompat.monitoring.administration.requests import InternalRequests
from kafkacompat.monitoring.http import BROKEN
from kafkacompat.security.principals import ANONYMOUS, Principal
from kafkacompat.server.instance_connections import GONE
from kafkacompat.web.actions import find_action
from kafkacompat.web.forms import check_host, check_same_origin, check_target, read_cookie, read_form, read_target
from kafkacompat.web.pages import find_page
from kafkacompat.web.rendering import STATIC_TYPES, Renderer, StaticFiles, build_link, read_part
from kafkacompat.web.sessions import COOKIE, LIFETIME_S, Sessions
from kafkacompat.web.text import reveal_hidden
from kafkacompat.web.visits import User, Visit, WebServices
from kafkacompat.wire import entities
from kafkacompat.wire.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twisted.python.failure import Failure

    from kafkacompat.tenancy.tenant_view import TenantView

log = logging.getLogger(__name__)

LOGIN, LOGOUT, STATIC = "login", "logout", "static"
HTML = b"text/html; charset=utf-8"
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"Content-Security-Policy": POLICY.encode(),
    b"X-Content-Type-Options": b"nosniff",
    b"X-Frame-Options": b"DENY",
    b"Referrer-Policy": b"same-origin",
    b"Cross-Origin-Opener-Policy": b"same-origin",
    b"Cross-Origin-Resource-Policy": b"same-origin",
}
PLAIN_TEMPLATES = ("parts.html", "layout.html", "login.html", "error.html")
"""The templates of pages that are rendered on the reactor's thread; another thread compiles them, since that takes longer."""
NO_STORE, FOR_EVER = b"no-store", b"private, max-age=31536000, immutable"


class Reply(NamedTuple):
    """An answer over HTTP; ``location`` and ``cookie`` are header values, "" for none."""

    status: int
    body: bytes = b""
    content_type: bytes = HTML
    location: str = ""
    cookie: str = ""
    caching: bytes = NO_STORE


class Entrance(Resource):
    """/, which leads to the page."""

    isLeaf = True  # noqa: N815 (Twisted's name)

    def render(self, request: Request) -> bytes:
        """Twisted: answer."""
        request.setResponseCode(303)
        request.setHeader(b"Location", b"/ui")
        return b""


class WebPage(Resource):
    """/ui and all below it."""

    isLeaf = True  # noqa: N815 (Twisted's name)

    def __init__(self, services: WebServices) -> None:
        super().__init__()
        self._services = services
        self._sessions = Sessions(services.clock, services.rng.randbytes)
        # Browsers send the cookies of a host to all its ports: the brokers of a cluster may share the host.
        self._cookie_name = f"{COOKIE}_{services.node_id}"
        self._static = StaticFiles()
        self._renderer = Renderer(self._static)
        self._is_compiled = False

    def render(self, request: Request) -> Any:
        """Twisted: answer, once the broker has."""
        return write_later(request, self._answer(request), self._explain, _write)

    async def _answer(self, request: Request) -> Reply:
        if not self._is_compiled:
            await self._services.run(self._renderer.compile, PLAIN_TEMPLATES)
            self._is_compiled = True
        parts = [part.decode("utf-8", "replace") for part in request.postpath or ()]
        path = tuple(map(read_part, parts[:-1] if parts[-1:] == [""] else parts))
        if request.method not in (b"GET", b"HEAD", b"POST"):
            raise HttpError(405, "this page is read by GET")
        if path[:1] == (STATIC,):
            return self._serve_static(path[1:])
        if self._services.access is None:
            check_host(request.getHeader("host") or "", self._services.hosts)
        if request.method == b"POST":
            return await self._accept_form(request, path)
        if path == (LOGIN,):
            return self._show_login("", read_target(request))
        user = await self._find_user(request)
        if user is None:
            return Reply(303, location=build_link((LOGIN,), to=(request.uri or b"").decode("ascii", "replace")))
        return await self._show_page(request, path, user)

    def _begin_visit(self, request: Request, path: tuple[str, ...], user: User) -> Visit:
        services, host = self._services, request.getClientAddress().host
        requests = InternalRequests(
            services.dispatcher, user.principal, host, user.tenant, services.listener, services.clock
        )
        return Visit(services, user, requests, path, read_query(request.args or {}))

    async def _show_page(self, request: Request, path: tuple[str, ...], user: User) -> Reply:
        visit = self._begin_visit(request, path, user)
        try:
            page = await find_page(path)(visit)
        except (HttpError, KafkaError) as problem:
            return self._show_problem(problem, visit)
        values = {
            **self._list_common_values(user),
            "title": page.title,
            "section": page.section,
            **page.values,
        }
        return Reply(200, await self._services.run(self._renderer.render, page.template, values))

    def _show_problem(self, problem: HttpError | KafkaError, visit: Visit) -> Reply:
        """Show an error of a page or a form to its user."""
        status = problem.status if isinstance(problem, HttpError) else 400
        section = visit.path[0] if visit.path else ""
        common = self._list_common_values(visit.user)
        return self._render(status, "error.html", status=status, sentence=str(problem), section=section, **common)

    def _list_common_values(self, user: User | None) -> dict[str, Any]:
        tenant = None if user is None else user.tenant
        return {
            "node_id": self._services.node_id,
            "user": "" if user is None or not user.cookie else user.name,
            "instance": _name_instance(tenant),
            "form_token": "" if user is None else self._sessions.make_form_token(user.cookie),
            "is_writable": self._services.is_writable,
            "has_instances": bool(self._services.instances),
            "is_open": self._services.access is None,
        }

    def _serve_static(self, path: tuple[str, ...]) -> Reply:
        content = self._static.contents.get(path[0]) if len(path) == 1 else None
        if content is None:
            raise HttpError(404, "there is no such page")
        return Reply(200, content, STATIC_TYPES[path[0]], caching=FOR_EVER)

    # Users

    async def _find_user(self, request: Request) -> User | None:
        """Return the user of a request; None if somebody has to log in. Raises HttpError."""
        access = self._services.access
        if access is None:
            return User(ANONYMOUS, None, "")
        cookie = self._read_cookie(request)
        session = self._sessions.find(cookie)
        if session is None:
            return None
        if not await access.is_valid(session.login):
            self._sessions.end(cookie)
            return None
        principal = session.login.principal
        tenant = self._find_tenant(principal, request.getClientAddress().host)
        if _name_instance(tenant) != session.instance:
            # A user of an instance that is removed does not become one of the cluster.
            self._sessions.end(cookie)
            return None
        return User(principal, tenant, cookie)

    def _find_tenant(self, principal: Principal, host: str) -> TenantView | None:
        """Return the instance of a user, None for one of the cluster; raises HttpError 403 if the instance refuses."""
        view = self._services.instances.find_owner(entities.USER, principal.name)
        if view is None:
            return None
        whitelist = view.instance.whitelist
        if not view.instance.is_active:
            raise HttpError(403, GONE)
        if whitelist is not None and host not in whitelist:
            raise HttpError(403, f"the address {host} is not in the whitelist of the instance {view.name}")
        return view

    async def _accept_form(self, request: Request, path: tuple[str, ...]) -> Reply:
        check_same_origin(request)
        fields = read_form(request)
        if path == (LOGIN,) and self._services.access is not None:
            return await self._log_in(request, fields)
        if not self._sessions.is_form_token(self._read_cookie(request), fields.get("token", "")):
            raise HttpError(403, "the form is not of this session: load the page again")
        if path == (LOGOUT,):
            return self._log_out(request)
        user = await self._find_user(request)
        if user is None:
            raise HttpError(403, "the session has ended: log in, and send the form again")
        if not self._services.is_writable:
            raise HttpError(405, "this page is read by GET")
        return await self._carry_out(request, path, user, fields)

    async def _carry_out(self, request: Request, path: tuple[str, ...], user: User, fields: Mapping[str, str]) -> Reply:
        visit = self._begin_visit(request, path, user)
        try:
            location = await find_action(path)(visit, fields)
        except (HttpError, KafkaError) as problem:
            return self._show_problem(problem, visit)
        host = request.getClientAddress().host
        log.info("%s by %s from %s over the web page", "/".join(map(reveal_hidden, path)), user.shown, host)
        return Reply(303, location=location)

    async def _log_in(self, request: Request, fields: Mapping[str, str]) -> Reply:
        access, host = self._services.access, request.getClientAddress().host
        assert access is not None
        try:
            name = self._find_physical_user(fields.get("name", ""), fields.get("instance", ""))
            login = await access.log_in(name, fields.get("secret", ""), host)
            tenant = self._find_tenant(login.principal, host)
        except HttpError as problem:
            return self._show_login(str(problem), fields.get("to", ""), problem.status)
        log.info("%s has logged in to the web page from %s", User(login.principal, None, "").shown, host)
        self._sessions.end(self._read_cookie(request))
        return Reply(
            303,
            location=check_target(fields.get("to", "")),
            cookie=self._make_cookie(request, self._sessions.begin(login, _name_instance(tenant))),
        )

    def _find_physical_user(self, name: str, instance: str) -> str:
        """Return the physical name of a user of an instance; a user who cannot exist has a name that nobody has."""
        if not instance:
            return name
        view = self._services.instances.by_name.get(instance)
        try:
            return "\0" if view is None else view.find_physical_user(name)
        except KafkaError:
            return "\0"

    def _log_out(self, request: Request) -> Reply:
        self._sessions.end(self._read_cookie(request))
        return Reply(303, location=build_link((LOGIN,)), cookie=self._make_cookie(request, "", age_s=0))

    def _read_cookie(self, request: Request) -> str:
        # Without a login there are no sessions: a cookie is that of another broker on this host.
        return "" if self._services.access is None else read_cookie(request, self._cookie_name)

    def _make_cookie(self, request: Request, value: str, age_s: int = LIFETIME_S) -> str:
        # A proxy that adds TLS says so; the cookie then never travels without it.
        secure = "; Secure" if request.getHeader("x-forwarded-proto") == "https" else ""
        return f"{self._cookie_name}={value}; Path=/ui; Max-Age={age_s}; HttpOnly; SameSite=Strict{secure}"

    def _show_login(self, sentence: str, target: str, status: int = 200) -> Reply:
        if self._services.access is None:
            return Reply(303, location=build_link(()))
        common = self._list_common_values(None)
        return self._render(status, "login.html", sentence=sentence, to=check_target(target), title="Log in", **common)

    def _explain(self, failure: Failure) -> Reply:
        problem = failure.value
        if isinstance(problem, HttpError):
            status, sentence = problem.status, str(problem)
        else:
            log.error("A page cannot be served", exc_info=problem)
            status, sentence = 500, BROKEN
        return self._render(status, "error.html", status=status, sentence=sentence, **self._list_common_values(None))

    def _render(self, reply_status: int, template: str, **values: Any) -> Reply:
        """Render a page without much contents."""
        return Reply(reply_status, self._renderer.render(template, {"title": "Error", "section": "", **values}))


def _name_instance(tenant: TenantView | None) -> str:
    return "" if tenant is None else str(tenant.name)


def _write(request: Request, reply: Reply) -> None:
    request.setResponseCode(reply.status)
    for name, value in HEADERS.items():
        request.setHeader(name, value)
    request.setHeader(b"Content-Type", reply.content_type)
    request.setHeader(b"Cache-Control", reply.caching)
    request.setHeader(b"Content-Length", b"%d" % len(reply.body))
    if reply.location:
        request.setHeader(b"Location", reply.location.encode())
    if reply.cookie:
        request.responseHeaders.addRawHeader(b"Set-Cookie", reply.cookie.encode())
    if request.method != b"HEAD":
        request.write(reply.body)
    request.finish()
