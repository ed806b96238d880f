"""What every request passes first: its size, its rate, its key. Without a key all answers are alike."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from anyio import CancelScope
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response

from privgp.errors import LedgerUnreachable
from privgp.server.errors import Refused
from privgp.server.jobs.metrics import KIND, OTHER, Metrics
from privgp.server.jobs.turns import BUSY, Turns
from privgp.server.settings import Settings
from privgp.server.store.keys import Who
from privgp.server.store.store import Store

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

COOKIES = {False: "privgp", True: "__Host-privgp"}  # without TLS, and with it
OWN = b"x-privgp"  # a header that pages of other hosts cannot send
FROM = b"sec-fetch-site"  # by which browsers tell whose page sent a request
OURS = (b"same-origin", b"none")  # pages of another port or a sister host are "same-site"
SIGN_IN = "/signin", "/signin/oidc", "/signin/oidc/callback"
OPEN = {"/health", "/openapi.json", "/static/page.css", *SIGN_IN}
UPLOADS = ("/api/tables", "/updates")
UNKNOWN = "@"  # before the address of a caller without a key
NO_KEY = "Give a valid key: Authorization: Bearer KEY."
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode("ascii"),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}
TLS_ONLY = {b"strict-transport-security": b"max-age=31536000"}
SOON = {"retry-after": "1"}
MORE = {401: {"www-authenticate": "Bearer"}, 429: SOON, 503: SOON}
KEPT = {b"cache-control": b"private, max-age=3600"}  # scripts and styles, for an hour
METRICS = "/metrics"
GONE = 499  # the client went away before it was answered
MOST_BUCKETS = 10_000
LONGEST_LENGTH = 20  # digits
log = logging.getLogger("privgp.server")


class Gone(Exception):
    """The client went away."""


class Request:
    """One request: its body within its limits, and its answer, which is kept until its turn is over, as
    somebody may read slowly.

    Parameters
    ----------
    settings : of the server
    path : what is asked for
    receive, send : to and from the client

    """

    def __init__(self, settings: Settings, path: str, receive: Receive, send: Send) -> None:
        self._headers = {**HEADERS, **(KEPT if path.startswith("/static/") else {})}
        self._headers |= TLS_ONLY if settings.secure else {}
        self.is_upload = path == UPLOADS[0] or path.endswith(UPLOADS[1])
        self.most = settings.max_upload_bytes if self.is_upload else settings.max_body_bytes
        self.too_large = f"The request is larger than {self.most} bytes."
        self._receive, self._send = receive, send
        self._last = asyncio.get_running_loop().time() + settings.body_seconds
        self._body: bytes | None = None
        self._read, self._complete = 0, False
        self._answer: list[Message] = []
        self.status = GONE

    async def read_body(self) -> None:
        """Read the whole body, for ``receive`` to hand out."""
        parts = []
        while not self._complete:
            message = await self._next()
            if message["type"] == "http.disconnect":
                raise Gone
            parts.append(message.get("body", b""))
        self._body = b"".join(parts)

    async def receive(self) -> Message:
        if self._body is None:
            return await self._next()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            there = {name for name, _ in message["headers"]}
            added = [pair for pair in self._headers.items() if pair[0] not in there]
            message = {**message, "headers": [*message["headers"], *added]}
        self._answer.append(message)

    async def send_answer(self) -> None:
        """Send all that the application answered."""
        for message in self._answer:
            self.status = message.get("status", self.status)
            await self._send(message)

    async def refuse(self, status: int, sentence: str) -> None:
        """Answer with one sentence, unless an answer was sent."""
        if self.status == GONE:
            await self.reply(JSONResponse({"error": sentence}, status, MORE.get(status)))

    async def reply(self, response: Response) -> None:
        """Answer with what the guard itself has to say."""
        self._answer = []
        await response({"type": "http"}, self.receive, self.send)
        await self.send_answer()

    async def cancel_if_gone(self, scope: CancelScope) -> None:
        """Cancel what is done for a client that goes away."""
        if (await self._receive())["type"] == "http.disconnect":
            scope.cancel()

    async def _next(self) -> Message:
        try:
            async with asyncio.timeout_at(None if self._complete else self._last):
                message = await self._receive()
        except TimeoutError:
            raise Refused(408, "The request came too slowly.") from None
        self._complete = not message.get("more_body", False)
        self._read += len(message.get("body", b""))
        if self._read > self.most:
            raise Refused(413, self.too_large)
        return message


class Rates:
    """A bucket of requests for every key, refilled at a steady rate."""

    def __init__(self, rate: float, burst: int) -> None:
        self.rate, self.burst = rate, float(burst)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allow(self, name: str) -> bool:
        now = time.monotonic()
        left, at = self._buckets.pop(name, (self.burst, now))
        left = min(self.burst, left + self.rate * (now - at))
        allowed = left >= 1.0
        self._buckets[name] = (left - 1.0 if allowed else left, now)
        while len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return allowed


class Guard:
    """What stands between the network and the application.

    Parameters
    ----------
    app : the application
    settings : of the server
    store : knows the keys
    predictions : the queue of predictions, which is counted too

    """

    def __init__(
        self, app: Application, settings: Settings, store: Store, predictions: Turns | None = None
    ) -> None:
        self.application, self.settings, self.store = app, settings, store
        self._keys = Rates(settings.requests_per_second, settings.burst)
        self._addresses = Rates(settings.requests_per_second, settings.burst)
        self._accepted: Counter[str] = Counter()  # requests by key, or by address without one
        own = settings.max_requests_per_key
        self._turns, self._uploads = Turns(settings.threads, own), Turns(settings.threads, own)
        more = {} if predictions is None else {"predictions": predictions}
        self.metrics = Metrics(store, {"requests": self._turns, "uploads": self._uploads, **more})

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
        elif scope["type"] == "http" and scope["path"] == "/health":  # whatever else there is to do
            await Request(self.settings, "", receive, send).reply(JSONResponse({"status": "ok"}))
        elif scope["type"] == "http":
            request, start = Request(self.settings, scope["path"], receive, send), time.monotonic()
            await self._guard_request(scope, request)
            route = getattr(scope.get("route"), "path", OTHER)
            seconds = time.monotonic() - start
            self.metrics.count(scope["method"], route, request.status, seconds)

    @contextmanager
    def _place(self, owner: str, anonymous: bool) -> Iterator[bool]:
        """Whether one more request is accepted. Neither one key nor all who have none get more than
        half of the places, and every key gets one, whatever others do."""
        half = -(-self.settings.max_requests // 2)
        own = self.settings.max_requests_per_key if anonymous else half
        room = self._accepted.total() < self.settings.max_requests and self._accepted[owner] < own
        if anonymous:
            unknown = sum(n for name, n in self._accepted.items() if name.startswith(UNKNOWN))
            room = room and unknown < half
        else:
            room = room or not self._accepted[owner]
        self._accepted[owner] += int(room)
        try:
            yield room
        finally:
            self._accepted[owner] -= int(room)
            if not self._accepted[owner]:
                del self._accepted[owner]

    async def _guard_request(self, scope: Message, request: Request) -> None:
        headers = dict(scope["headers"])
        path, refuse = scope["path"], request.refuse
        if not self._accepts_host(headers.get(b"host")):
            return await refuse(400, "This host name is not among the settings' hosts.")
        try:
            who = await asyncio.to_thread(self._who, headers)
        except LedgerUnreachable:
            return await refuse(503, "The server cannot reach its database: try again later.")
        if path == METRICS and self._may_count(headers):
            counted = await asyncio.to_thread(self.metrics.page)
            return await request.reply(Response(counted, media_type=KIND))
        address = (scope.get("client") or ("",))[0]
        allowed = self._addresses.allow(address) if who is None else self._keys.allow(who.key)
        if not allowed:
            return await refuse(429, "Too many requests: try again in a moment.")
        if who is None and path not in OPEN:
            in_browser = b"text/html" in headers.get(b"accept", b"") and "/api/" not in path
            if scope["method"] != "GET" or not in_browser:
                return await refuse(401, NO_KEY)
            return await request.reply(RedirectResponse("/signin", 303))
        changes = scope["method"] not in ("GET", "HEAD") and path not in OPEN
        elsewhere = scope["method"] == "POST" and headers.get(FROM, OURS[0]) not in OURS
        if elsewhere or (who is not None and who.by_cookie and changes and OWN not in headers):
            return await refuse(403, "This request did not come from the server's own page.")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit():
            return await refuse(400, "Content-Length must be a whole number.")
        if len(length) > LONGEST_LENGTH or int(length) > request.most:
            return await refuse(413, request.too_large)
        scope["state"] = {**scope.get("state", {}), "who": who}
        # Nothing of ours is long enough for parts, and thousands of them are work.
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"range"]
        owner = f"{UNKNOWN}{address}" if who is None else who.key
        with self._place(owner, who is None) as room:
            if room:
                await self._answer(scope, request, owner)
            else:
                await refuse(503, BUSY)

    async def _answer(self, scope: Message, request: Request, owner: str) -> None:
        """Hand the request on when it is its owner's turn. A client that sends or reads slowly has no
        turn meanwhile; tables, which go to the disk as they come, have their own turns."""
        try:
            if request.is_upload:
                await self._hand_on(scope, request, self._uploads, owner)
            else:
                await self._hand_on_whole(scope, request, owner)
            await request.send_answer()
        except Refused as refused:
            await request.refuse(refused.status, refused.sentence)
        except Gone:
            pass
        except Exception as problem:  # whose text might quote anything
            log.error("a request failed: %s", type(problem).__name__)
            await request.refuse(500, "The server failed unexpectedly.")

    async def _hand_on_whole(self, scope: Message, request: Request, owner: str) -> None:
        """Hand a request on once its body is there, until its client goes away."""
        await request.read_body()
        cancelling = CancelScope()
        watching = asyncio.create_task(request.cancel_if_gone(cancelling))
        try:
            with cancelling:
                await self._hand_on(scope, request, self._turns, owner)
        finally:
            watching.cancel()

    async def _hand_on(self, scope: Message, request: Request, turns: Turns, owner: str) -> None:
        async with turns.turn(owner, self.settings.max_wait_seconds):
            await self.application(scope, request.receive, request.send)

    def _may_count(self, headers: dict[bytes, bytes]) -> bool:
        """Whether a request has the token of the metrics."""
        token, given = self.settings.metrics_token, headers.get(b"authorization", b"")
        return token is not None and hmac.compare_digest(given, f"Bearer {token}".encode())

    def _accepts_host(self, host: bytes | None) -> bool:
        """Whether requests to this name are for this server; a page of another name is not."""
        if host is None:  # no browser leaves it out
            return True
        name = re.sub(r":\d*$", "", host.decode("latin-1")).lower()
        return name in self.settings.hosts or "*" in self.settings.hosts

    def _who(self, headers: dict[bytes, bytes]) -> Who | None:
        word, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if word.lower() == "bearer":
            return self.store.who(key.strip())
        cookies = cookie_parser(headers.get(b"cookie", b"").decode("latin-1"))
        token = cookies.get(COOKIES[self.settings.secure], "")
        if not token:
            return self.store.who("")  # looked for like any other
        return self.store.who_has_session(token)
