"""Who makes a request, and what they may do: settled once for each request, before anything is read or stored.

- A caller of this machine without a token (local mode, and local requests in hybrid mode): every permission; what other
  users of the machine may not have is decided by ``ownership``.
- The bearer of the owner token of this machine: an administrator.
- The bearer of a token or an API key: the permissions of its role, within its scope.

Source: architecture.txt "Auth Middleware"; docs/compatibility.md "Authentication"; docs/decisions.md 24, 40, 41.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from signet_actors.config.schema import AuthMode
from signet_actors.domain import permissions as rights
from signet_actors.domain.timestamps import iso
from signet_actors.domain.tokens import ApiKey, Claims, TokenRefused, TokenScope, read_api_key, verify
from signet_actors.errors import ErrorCode, SignetError, Unavailable
from signet_actors.gateway.auth.token_registry import TokenRegistry, proves
from signet_actors.operations.headers import OWNER_TOKEN_HEADER
from signet_actors.operations.operation import Operation
from signet_actors.runtime.clock import Clock

_OWNER_HEADER: Final = OWNER_TOKEN_HEADER.encode()
_NO_SCOPE: Final = TokenScope()


class Unauthorized(SignetError):
    """authentication required"""

    code = ErrorCode.UNAUTHORIZED


class WrongToken(Unauthorized):
    """A token or key was sent, and is not accepted."""


class Forbidden(SignetError):
    """This request is not permitted."""

    code = ErrorCode.FORBIDDEN


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller. ``role`` None: one of this machine without a token. ``id``: of the token or key; its rate limits.

    ``name``: as history records its changes. ``scope``: what it is limited to; an administrator is not.
    """

    id: str
    name: str
    role: rights.Role | None
    permissions: frozenset[rights.Permission]
    scope: TokenScope = _NO_SCOPE
    claims: Claims | None = None

    @property
    def is_limited_to_memories(self) -> bool:
        """Whether it reads the memories of one project or user only, so that nothing made of others is for it."""
        return self.scope.project is not None or self.scope.user is not None

    @property
    def has_sessions(self) -> bool:
        """Whether its requests belong to sessions: of a reader nothing is noted, and it changes no session's state."""
        return rights.Permission.REMEMBER in self.permissions

    @property
    def has_rate_limits(self) -> bool:
        return self.role is not None and self.id != OWNER.id

    def actor_type(self, named: str) -> str:
        """Return what counts as the type of the actor: a header can make it autonomous, and never a person."""
        if self.role in {None, rights.Role.ADMIN, rights.Role.OPERATOR} or named in rights.AUTONOMOUS_ACTOR_TYPES:
            return named
        return "agent"

    def check(self, operation: Operation[Any]) -> None:
        """Raise Forbidden if the role lacks the permission, or the operation does not honour a limit of the scope."""
        if self.role is None or operation.permission is None:
            return
        if operation.permission not in self.permissions:
            raise Forbidden(f"role '{self.role}' lacks '{operation.permission}' permission")
        for limit in ("project", "agent", "user"):
            value = getattr(self.scope, limit)
            if value is not None and limit not in operation.scoped_by:
                raise Forbidden(f"scope restricted to {limit} '{value}'")


LOCAL: Final = Identity("", "", None, frozenset(rights.Permission))
OWNER: Final = Identity("owner", "owner", rights.Role.ADMIN, frozenset(rights.Permission))


class Authenticator:
    """Finds out who makes a request. ``secret`` signs tokens; while it is empty, none is accepted."""

    def __init__(self, tokens: TokenRegistry, clock: Clock) -> None:
        self.tokens = tokens
        self.secret = b""
        self._clock = clock

    async def identify(
        self,
        mode: AuthMode,
        headers: Iterable[tuple[bytes, bytes]],
        *,
        owner_token: str | None,
        is_local: bool,
        on_loopback: bool,
    ) -> Identity:
        """Return who makes the request. Raises Unauthorized; Unavailable while it is not known which tokens are valid.

        ``is_local``: it comes from this machine, and no proxy is configured. ``on_loopback``: the same, but one may be.
        """
        if mode == "local":
            return LOCAL
        bearer = owner = None
        for name, value in headers:
            if name == b"authorization":
                bearer = value
            elif name == _OWNER_HEADER and on_loopback:
                owner = value
        if bearer is not None:
            return await self._bearer(bearer)
        if owner is not None and owner_token is not None:
            if hmac.compare_digest(owner.strip(), owner_token.encode()):
                return OWNER
            raise WrongToken("authentication required")
        if mode == "hybrid" and is_local:
            return LOCAL
        raise Unauthorized

    async def still_accepts(self, identity: Identity) -> bool:
        """Return whether the token by which the caller is known is still valid; True for one without a token."""
        if not identity.id or identity is OWNER:
            return True
        claims = identity.claims
        if claims is not None and claims.exp * 1000 <= self._clock.wall_ms():
            return False
        return await self.tokens.find(identity.id, "api_key" if claims is None else "token") is not None

    async def _bearer(self, header: bytes) -> Identity:
        """Return whom the header names. Raises Unauthorized with the documented text."""
        parts = header.decode("latin-1").split(" ")
        if len(parts) != 2 or parts[0].lower() != "bearer" or not parts[1]:
            raise Unauthorized
        if not self.secret:
            raise Unavailable("The secret that signs tokens cannot be read", retry_after_ms=1000)
        key = read_api_key(parts[1])
        if key is not None:
            return await self._of_key(key)
        try:
            claims = verify(self.secret, parts[1], self._clock.wall_ms() // 1000)
        except TokenRefused as refused:
            raise WrongToken(str(refused)) from None
        row = await self.tokens.find(claims.jti, "token")
        issued = None if row is None else (row.role, row.scope, row.expires_at)
        if issued != (claims.role, claims.scope, iso(claims.exp * 1000)):  # signed with a secret that has leaked
            raise WrongToken("token revoked")
        scope = _NO_SCOPE if claims.role is rights.Role.ADMIN else claims.scope
        return Identity(claims.jti, claims.sub, claims.role, rights.PERMISSIONS_OF[claims.role], scope, claims)

    async def _of_key(self, key: ApiKey) -> Identity:
        row = await self.tokens.find(key.id, "api_key")
        if not proves(row, key.secret) or row is None:
            raise WrongToken("invalid signature")
        return Identity(row.id, row.name, row.role, rights.API_KEY_PERMISSIONS, row.scope)
