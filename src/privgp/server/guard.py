"""What every request passes first: its size, its rate, its key. Without a key all answers are alike."""

import asyncio
import json
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import replace
from http.cookies import CookieError, SimpleCookie
from typing import Any

from privgp.ledger.errors import LedgerUnreachable
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
OPEN = {"/health", "/openapi.json", "/signin", "/static/page.css"}
UPLOADS = ("/api/tables", "/updates")
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
MOST_BUCKETS = 10_000
LONGEST_LENGTH = 20  # digits
log = logging.getLogger("privgp.server")


HEALTHY = b'{"status":"ok"}'


class TooLarge(Exception):
    """The body of a request is larger than it may be."""


class TooSlow(Exception):
    """The body of a request did not come in time."""


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
    def __init__(self, app: Application, settings: Settings, store: Store) -> None:
        self.application, self.settings, self.store = app, settings, store
        self._keys = Rates(settings.rate, settings.burst)
        self._addresses = Rates(settings.rate, settings.burst)
        self._running: Counter[str] = Counter()  # requests by key, or by address without one

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
        elif scope["type"] == "http" and scope["path"] == "/health":
            await _answer_health(send)  # whatever else there is to do
        elif scope["type"] == "http":
            await self._guard_request(scope, receive, send)

    @contextmanager
    def _slot(self, owner: str) -> Iterator[bool]:
        """Whether there is room for one more request, of everybody and of its owner."""
        most, own = self.settings.most_at_once, self.settings.most_of_one
        room = self._running.total() < most and self._running[owner] < own
        self._running[owner] += int(room)
        try:
            yield room
        finally:
            self._running[owner] -= int(room)
            if not self._running[owner]:
                del self._running[owner]

    async def _guard_request(self, scope: Message, receive: Receive, send: Send) -> None:
        started, read = False, 0
        last = asyncio.get_running_loop().time() + self.settings.body_seconds
        complete, slow = False, False

        async def receive_part() -> Message:
            nonlocal read, complete, slow
            try:
                async with asyncio.timeout_at(None if complete else last):
                    message = await receive()
            except TimeoutError:
                slow = True
                raise TooSlow from None
            complete = not message.get("more_body", False)
            read += len(message.get("body", b""))
            if read > most:
                raise TooLarge
            return message

        async def send_out(message: Message) -> None:
            nonlocal started
            if slow:
                raise TooSlow  # whatever the application made of it
            if read > most:
                raise TooLarge
            if message["type"] == "http.response.start":
                started = True
                there = {name for name, _ in message["headers"]}
                added = [pair for pair in HEADERS.items() if pair[0] not in there]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        headers = dict(scope["headers"])
        path, most = scope["path"], self._most(scope["path"])
        try:
            who = await asyncio.to_thread(self._who, headers)
        except LedgerUnreachable:
            await _refuse(send_out, 503, "The server cannot reach its database: try again later.")
            return
        address = (scope.get("client") or ("",))[0]
        allowed = self._addresses.allow(address) if who is None else self._keys.allow(who.key)
        if not allowed:
            await _refuse(send_out, 429, "Too many requests: try again in a moment.")
            return
        if who is None and path not in OPEN:
            if path == "/" and scope["method"] == "GET":
                scope = {**scope, "path": "/signin"}
            else:
                await _refuse(send_out, 401, NO_KEY)
                return
        changes = scope["method"] not in ("GET", "HEAD") and path not in OPEN
        elsewhere = scope["method"] == "POST" and headers.get(FROM, OURS[0]) not in OURS
        if elsewhere or (who is not None and who.by_cookie and changes and OWN not in headers):
            await _refuse(send_out, 403, "This request did not come from the server's own page.")
            return
        length = headers.get(b"content-length", b"0")
        if not length.isdigit():
            await _refuse(send_out, 400, "Content-Length must be a whole number.")
            return
        if len(length) > LONGEST_LENGTH or int(length) > most:
            await _refuse(send_out, 413, f"The request is larger than {most} bytes.")
            return
        scope["state"] = {**scope.get("state", {}), "who": who}
        try:
            with self._slot(address if who is None else who.key) as room:
                if room:
                    await self.application(scope, receive_part, send_out)
                else:
                    await _refuse(send_out, 503, "The server is busy: try again in a moment.")
        except TooSlow:
            if not started:
                slow = False
                await _refuse(send_out, 408, "The request came too slowly.")
        except TooLarge:
            if not started:
                read = 0
                await _refuse(send_out, 413, f"The request is larger than {most} bytes.")
        except Exception as problem:  # whose text might quote anything
            log.error("a request failed: %s", type(problem).__name__)
            if not started:
                await _refuse(send_out, 500, "The server failed unexpectedly.")

    def _most(self, path: str) -> int:
        large = path == UPLOADS[0] or path.endswith(UPLOADS[1])
        return self.settings.most_upload if large else self.settings.most_body

    def _who(self, headers: dict[bytes, bytes]) -> Who | None:
        word, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if word.lower() == "bearer":
            return self.store.who(key.strip())
        token = cookie_in(headers.get(b"cookie", b"").decode("latin-1"), self.settings)
        if not token:
            return self.store.who("")  # looked for like any other
        found = self.store.who_has_session(token)
        return None if found is None else replace(found, by_cookie=True)


def cookie_in(text: str, settings: Settings) -> str:
    """The token of whoever is signed in; empty if there is none."""
    try:
        found = SimpleCookie(text).get(COOKIES[settings.secure])
    except CookieError:
        return ""
    return "" if found is None else found.value


async def _answer_health(send: Send) -> None:
    kind = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(HEALTHY))]
    await send({"type": "http.response.start", "status": 200, "headers": [*kind, *HEADERS.items()]})
    await send({"type": "http.response.body", "body": HEALTHY})


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode("ascii")
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status in (429, 503):
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
