"""Sign-in at an OpenID Connect provider, such as the one of a hospital. Authlib does the protocol.

The provider vouches for who somebody is. What they may do is decided by the key that a custodian made for
that identity: without one, nobody gets in.
"""

from __future__ import annotations

import logging
import secrets

from authlib.integrations.starlette_client import OAuth
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.middleware.sessions import SessionMiddleware

from privgp.server.service import Served
from privgp.server.settings import Settings
from privgp.server.store.schema import Row
from privgp.server.views.pages import render, set_session

START, CALLBACK = "/signin/oidc", "/signin/oidc/callback"
DISCOVERY = "/.well-known/openid-configuration"
SECONDS = 600  # to come back from the provider
FAILED = "The sign-in service did not confirm who you are: try again."
NOBODY = "There is no key for you here: ask a custodian to make one for your identity."
log = logging.getLogger("privgp.server")


def add_sign_in(made: FastAPI, settings: Settings) -> None:
    """Offer the sign-in that the settings name."""
    client = OAuth().register(
        "provider",
        client_id=settings.oidc_client_id,
        client_secret=settings.oidc_client_secret,
        server_metadata_url=settings.oidc_issuer.rstrip("/") + DISCOVERY,
        client_kwargs={"scope": "openid email", "code_challenge_method": "S256", "timeout": 10},
    )
    # Checked beside what Authlib checks: signature, nonce, state and times.
    claims = {
        "iss": {"essential": True, "value": settings.oidc_issuer},
        "aud": {"essential": True, "value": settings.oidc_client_id},
    }
    router = APIRouter(include_in_schema=False)

    @router.get(START)
    async def start(request: Request) -> Response:
        try:
            sent: Response = await client.authorize_redirect(
                request, f"{settings.address}{CALLBACK}"
            )
        except Exception as problem:
            return _refuse(problem)
        return sent

    @router.get(CALLBACK)
    async def callback(s: Served, request: Request) -> Response:
        try:
            told = await client.authorize_access_token(request, claims_options=claims)
            identity = _identity(told["userinfo"], settings.oidc_claim)
        except Exception as problem:  # whose text might quote a token
            return _refuse(problem)
        who = await run_in_threadpool(s.store.who_is, identity)
        if who is None:
            return render("signin.html", status=403, problem=NOBODY, oidc=True)
        return await set_session(s, who, render("parts/signed_in.html"))

    made.include_router(router)
    made.add_middleware(
        SessionMiddleware,
        secret_key=secrets.token_hex(32),
        session_cookie="privgp-oidc",
        max_age=SECONDS,
        path=START,
        same_site="lax",  # as the browser comes back from another site
        https_only=settings.secure,
    )


def _identity(claims: Row, name: str) -> str:
    """The claim that names a person; an address of mail must be verified."""
    found = claims.get(name)
    if not isinstance(found, str) or not found:
        raise ValueError("the claim is missing")
    if name == "email" and claims.get("email_verified") is not True:
        raise ValueError("the address is not verified")
    return found


def _refuse(problem: Exception) -> Response:
    log.error("a sign-in failed: %s", type(problem).__name__)
    return render("signin.html", status=401, problem=FAILED, oidc=True)
