"""What every request passes first: its size, its rate, its key. Without a key all answers are alike."""

import asyncio
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
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

COOKIE = "privgp"
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


class TooLarge(Exception):
    """The body of a request is larger than it may be."""


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
        self._running = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        self._running += 1
        try:
            await self._guard_request(scope, receive, send)
        finally:
            self._running -= 1

    async def _guard_request(self, scope: Message, receive: Receive, send: Send) -> None:
        started, read = False, 0

        async def receive_part() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > most:
                raise TooLarge
            return message

        async def send_out(message: Message) -> None:
            nonlocal started
            if read > most:
                raise TooLarge  # whatever the application made of it
            if message["type"] == "http.response.start":
                started = True
                there = {name for name, _ in message["headers"]}
                added = [pair for pair in HEADERS.items() if pair[0] not in there]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        headers = dict(scope["headers"])
        path, most = scope["path"], self._most(scope["path"])
        if self._running > self.settings.most_at_once:
            await _refuse(send_out, 503, "The server is busy: try again in a moment.")
            return
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
            await self.application(scope, receive_part, send_out)
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
        token = cookie_in(headers.get(b"cookie", b"").decode("latin-1"))
        if not token:
            return self.store.who("")  # looked for like any other
        found = self.store.who_has_session(token)
        return None if found is None else replace(found, by_cookie=True)


def cookie_in(text: str) -> str:
    try:
        found = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode("ascii")
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status in (429, 503):
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
