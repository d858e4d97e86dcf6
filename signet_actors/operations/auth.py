"""The identity of the caller. Source: docs/compatibility.md "Authentication"."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from signet_actors.config.schema import AuthMode
from signet_actors.domain.permissions import Permission
from signet_actors.domain.tokens import Claims
from signet_actors.operations.field_types import SecretRule, Text
from signet_actors.operations.operation import BY_ALL, Effect, Operation
from signet_actors.operations.problem import Problem
from signet_actors.operations.request_fields import NoFields


class WhoAmIReply(msgspec.Struct, frozen=True):
    """The caller's identity. ``claims``: of the token that was sent; null without one, and for an API key."""

    authenticated: bool
    claims: Claims | None
    mode: AuthMode


WHO_AM_I: Final[Operation[NoFields, WhoAmIReply]] = Operation(
    name="auth.whoami",
    summary="Identity of the caller",
    tag="auth",
    paths=("/api/auth/whoami",),
    replies={200: WhoAmIReply},
    permission=None,
    scoped_by=BY_ALL,
)


class PageCodeReply(msgspec.Struct, frozen=True, rename="camel"):
    """``code`` is null if the page needs no token."""

    code: str | None
    expires_in_seconds: int


class PageTokenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The code of the owner's."""

    code: Annotated[str, Text(max_chars=200, secret=SecretRule.KEEP)]


class PageTokenReply(msgspec.Struct, frozen=True):
    """The token that proves that the page was opened by the user that runs the daemon."""

    token: str


PAGE_CODE: Final[Operation[NoFields, PageCodeReply]] = Operation(
    name="auth.page_code",
    summary="Issue a code with which the page gets the owner's token",
    tag="auth",
    method="POST",
    paths=("/api/auth/page-code",),
    replies={200: PageCodeReply, 403: Problem},
    permission=Permission.ADMIN,
    effect=Effect.OTHER,
    rate="admin",
    keyed=False,
    owner_only=True,
    body_required=False,
    description="For one use within half a minute. `signet dashboard` opens the page with it.",
)
PAGE_TOKEN: Final[Operation[PageTokenRequest, PageTokenReply]] = Operation(
    name="auth.page_token",
    summary="Exchange that code",
    tag="auth",
    method="POST",
    paths=("/api/auth/page-token",),
    request=PageTokenRequest,
    example={"code": "of-signet-dashboard"},
    replies={200: PageTokenReply, 400: Problem, 401: Problem},
    permission=None,
    public=True,
    scoped_by=BY_ALL,
    effect=Effect.OTHER,
    keyed=False,
)
OPERATIONS: Final = (WHO_AM_I, PAGE_CODE, PAGE_TOKEN)
