"""A small OpenID Connect provider on this machine, which also lies when it is told to."""

from __future__ import annotations

import base64
import hashlib
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, RedirectResponse
from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "privgp", "a secret of the tests"


@dataclass
class Provider:
    """``claims``: what it tells of whoever comes; ``header``, ``key``: how it signs that."""

    address: str = ""
    end: str = ""  # of its name, behind the address
    claims: dict[str, Any] = field(default_factory=dict)
    header: dict[str, str] = field(default_factory=lambda: {"alg": "RS256", "kid": "1"})
    own: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "1"}))
    key: Any = None
    waiting: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def issuer(self) -> str:
        return self.address + self.end

    def token(self, asked: dict[str, str]) -> str:
        now = int(time.time())
        usual = {"iss": self.issuer, "aud": CLIENT, "sub": "1", "iat": now, "exp": now + 60}
        told = {**usual, "nonce": asked["nonce"], **self.claims}
        return jwt.encode(self.header, told, self.key or self.own)

    def application(self) -> FastAPI:
        made = FastAPI()

        @made.get("/.well-known/openid-configuration")
        def configuration() -> dict[str, Any]:
            paths = {
                "authorization_endpoint": "/ask",
                "token_endpoint": "/token",
                "jwks_uri": "/keys",
            }
            return {"issuer": self.issuer, **{k: self.address + v for k, v in paths.items()}}

        @made.get("/keys")
        def keys() -> dict[str, Any]:
            return {"keys": [self.own.as_dict(private=False)]}

        @made.get("/ask")
        def ask(request: Request) -> RedirectResponse:
            asked, code = dict(request.query_params), secrets.token_hex(8)
            assert asked["client_id"] == CLIENT
            self.waiting[code] = asked
            return RedirectResponse(f"{asked['redirect_uri']}?code={code}&state={asked['state']}")

        @made.post("/token")
        async def token(request: Request) -> Any:
            sent = {k: v[0] for k, v in parse_qs((await request.body()).decode()).items()}
            asked = self.waiting.pop(sent.get("code", ""), None)
            known = f"Basic {base64.b64encode(f'{CLIENT}:{SECRET}'.encode()).decode()}"
            if asked is None or request.headers.get("authorization") != known:
                return JSONResponse({"error": "invalid_grant"}, 400)
            proof = hashlib.sha256(sent["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(proof).decode().rstrip("=")
            assert challenge == asked["code_challenge"]
            return {"access_token": "x", "token_type": "Bearer", "id_token": self.token(asked)}

        return made


@contextmanager
def providing(end: str = "") -> Iterator[Provider]:
    """A provider that listens."""
    provider = Provider(end=end)
    server = uvicorn.Server(uvicorn.Config(provider.application(), port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    provider.address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    try:
        yield provider
    finally:
        server.should_exit = True
        thread.join()
