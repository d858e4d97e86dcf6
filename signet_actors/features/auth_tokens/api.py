"""Tokens and API keys: issue, list, replace and revoke them while the daemon runs.

Source: architecture.txt "Auth Middleware"; docs/compatibility.md "Authentication"; docs/guides/team.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.config.schema import AGENT_NAME_PATTERN
from signet_actors.domain.permissions import API_KEY_PERMISSIONS, Permission, Role
from signet_actors.domain.tokens import KEY_PREFIX, TokenScope
from signet_actors.errors import InvalidRequest
from signet_actors.operations.field_types import ABSENT, Choice, Clamped, Given, SecretRule, Text
from signet_actors.operations.operation import ADMIN_CHANGE, Operation
from signet_actors.operations.problem import CHANGE_PROBLEMS, PROBLEMS, Problem
from signet_actors.operations.request_fields import NoFields, Offset
from signet_actors.operations.transcripts import OwnAgent
from signet_actors.protocol.message import Answered, KeyedRequest, Request

MAX_LIVE: Final = 1000
"""Tokens and keys that may be valid at one time."""
MAX_TTL_S: Final = 31_536_000
NOT_LOCAL: Final = "auth secret not available (local mode?)"
"""Refuses a token in local mode, where none is needed; clients know this text (docs/compatibility.md)."""
Kind = Literal["token", "api_key"]
_NAME: Final = Text(max_chars=200, secret=SecretRule.REFUSE)
_OTHERS: Final = frozenset({"owner", "daemon"})
_AGENT_NAME: Final = re.compile(AGENT_NAME_PATTERN)


@dataclass(frozen=True, kw_only=True)
class LimitText(Text):
    """What a token is limited to. A blank one is refused: if it counted as absent, the token would have no limit."""

    def read(self, given: Given) -> Any:
        """Return the name. Raises InvalidRequest."""
        name = super().read(given)
        if name is ABSENT:
            raise given.invalid("must not be blank; without a limit it is left out")
        return name


_LIMIT: Final = LimitText(max_chars=200, secret=SecretRule.REFUSE)


def _check_agent(name: str | None, field: str) -> None:
    if name is not None and not _AGENT_NAME.match(name):
        raise InvalidRequest(f"{field} must be an agent's name", field=field)


def _check_line(name: str | None) -> None:
    """Raise InvalidRequest if the history and the log could not show the name in one line."""
    if name is not None and not name.isprintable():
        raise InvalidRequest("name must be one line without control characters", field="name")
    if name in _OTHERS:
        raise InvalidRequest(f"name cannot be {name}, which names another author in the history", field="name")


class ScopeFields(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the token is limited to; without a field it is not limited by it."""

    project: Annotated[str, _LIMIT, Meta(description="Memories of exactly this project")] | None = None
    agent: Annotated[str, _LIMIT, Meta(description="Acts as this agent only")] | None = None
    user: Annotated[str, _LIMIT, Meta(description="Memories with this `who` only")] | None = None

    def __post_init__(self) -> None:
        _check_agent(self.agent, "scope.agent")


class CreateTokenRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The token to issue."""

    role: Annotated[
        str, Choice(values=tuple(Role)), Meta(description="What its bearer may do: admin, operator, agent or readonly")
    ]
    scope: Annotated[ScopeFields, Meta(description="What it is limited to")] = ScopeFields()
    name: Annotated[str, _NAME, Meta(description="Names its bearer in the history; default: `token:` and the id")] | (
        None
    ) = None
    ttl_seconds: (
        Annotated[int, Clamped(low=60, high=MAX_TTL_S), Meta(description="Seconds until it expires")] | None
    ) = None
    session: Annotated[
        bool,
        Meta(description="Expires after auth.sessionTokenTtlSeconds, if ttlSeconds is not given"),
    ] = False

    def __post_init__(self) -> None:
        _check_line(self.name)


class TokenIssued(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """``token`` is shown once; the daemon does not keep it."""

    token: str
    expires_at: str
    id: str
    warnings: list[str] | UnsetType = UNSET


class TokenReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A token or a key as it was issued, without what proves it."""

    id: str
    kind: Kind
    name: str
    role: Role
    scope: TokenScope
    connector: str | None
    created_at: str
    created_by: str
    expires_at: str | None
    revoked_at: str | None


class ListTokensRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """Which page of the tokens to return."""

    limit: Annotated[int, Clamped(low=1, high=1000), Meta(description="Tokens to return")] = 100
    offset: Offset = 0


class TokensReply(msgspec.Struct, frozen=True):
    """A page of the tokens and keys, the newest first; ``total`` counts all of them."""

    tokens: list[TokenReport]
    total: int


class TokenRevoked(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """From now on the token is not accepted."""

    id: str
    revoked_at: str
    warnings: list[str] | UnsetType = UNSET


class CreateApiKeyRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The key to issue, for a program that runs for long."""

    name: Annotated[str, _NAME, Meta(description="Names the program in the history")]
    connector: Annotated[str, _NAME, Meta(description="What uses it, as the name of a harness")] | None = None
    agent_id: Annotated[str, _LIMIT, Meta(description="Acts as this agent only")] | None = None

    def __post_init__(self) -> None:
        _check_line(self.name)
        _check_agent(self.agent_id, "agentId")


class IssuedKey(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An API key. ``key`` is there only in the reply that issues it; ``prefix`` is the part that names it."""

    id: str
    prefix: str
    name: str
    key: str | UnsetType = UNSET
    role: Literal["agent"] = "agent"
    connector: str | None
    harness: str | None
    agent_id: str | None
    permissions: list[str] = msgspec.field(default_factory=lambda: sorted(API_KEY_PERMISSIONS))
    created_at: str
    last_used_at: None = None
    revoked_at: str | None = None
    expires_at: None = None


class ApiKeyIssued(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The issued key."""

    api_key: IssuedKey
    warnings: list[str] | UnsetType = UNSET


class ApiKeysReply(msgspec.Struct, frozen=True, rename="camel"):
    """All keys, the newest first."""

    api_keys: list[IssuedKey]


class StoredToken(msgspec.Struct, frozen=True, kw_only=True):
    """A row of ``auth_tokens``. ``secret_hash``: of a key, ``secret_digest`` of its secret."""

    id: str
    kind: Kind
    name: str
    role: Role
    project: str | None = None
    agent_id: str | None = None
    user_name: str | None = None
    connector: str | None = None
    secret_hash: bytes | None = None
    created_at: str = ""
    created_by: str = ""
    expires_at: str | None = None
    revoked_at: str | None = None

    @property
    def scope(self) -> TokenScope:
        return TokenScope(self.project, self.agent_id, self.user_name)


def issued_key(row: StoredToken, key: str | UnsetType = UNSET) -> IssuedKey:
    """Return the key as it is shown, with its text ``key`` when it is issued."""
    return IssuedKey(
        id=row.id,
        prefix=f"{KEY_PREFIX}{row.id}",
        name=row.name,
        key=key,
        connector=row.connector,
        harness=row.connector,
        agent_id=row.agent_id,
        created_at=row.created_at,
        revoked_at=row.revoked_at,
    )


class StoreToken(KeyedRequest[Answered], frozen=True, kw_only=True, tag="auth.store_token"):
    """Store what was issued, and reply with the row; with ``replaces``, revoke that token in the same transaction.

    Refused with ``Conflict`` beyond ``MAX_LIVE``, with ``NotFound`` if there is nothing to replace.
    """

    row: StoredToken
    replaces: str | None = None


class RevokeToken(KeyedRequest[Answered], frozen=True, kw_only=True, tag="auth.revoke_token"):
    """Revoke a token or key for good, and reply with its row. Refused with ``NotFound`` if there is no such one."""

    id: str
    kind: Kind


class FindLiveTokens(Request[Answered], frozen=True, tag="auth.find_live_tokens"):
    """Return what is accepted now, as ``LiveTokens``."""


class LiveTokens(msgspec.Struct, frozen=True):
    """The rows that are not revoked and not expired."""

    rows: list[StoredToken]


CREATE: Final[Operation[CreateTokenRequest, TokenIssued]] = Operation(
    name="auth.create_token",
    summary="Issue a token",
    tag="auth",
    method="POST",
    paths=("/api/auth/token",),
    request=CreateTokenRequest,
    example={"role": "agent", "scope": {"agent": "ada"}, "name": "laptop of Ada"},
    replies={200: TokenIssued, 403: Problem, **CHANGE_PROBLEMS},
    **ADMIN_CHANGE,
    served_by="writer",
    keyed=False,
)
LIST: Final[Operation[ListTokensRequest, TokensReply]] = Operation(
    name="auth.list_tokens",
    summary="Tokens and keys that were issued",
    tag="auth",
    paths=("/api/auth/tokens",),
    request=ListTokensRequest,
    example={"limit": 20},
    replies={200: TokensReply, 403: Problem, **PROBLEMS},
    permission=Permission.ADMIN,
    owner_only=True,
    served_by="searcher",
)
ROTATE: Final[Operation[NoFields, TokenIssued]] = Operation(
    name="auth.rotate_token",
    summary="Replace a token by a new one with the same rights",
    tag="auth",
    method="POST",
    paths=("/api/auth/tokens/{id}/rotate",),
    example={"id": "9f86d081884c7d659a"},
    replies={200: TokenIssued, 403: Problem, 404: Problem, **CHANGE_PROBLEMS},
    **ADMIN_CHANGE,
    served_by="writer",
    body_required=False,
    keyed=False,
)
REVOKE: Final[Operation[NoFields, TokenRevoked]] = Operation(
    name="auth.revoke_token",
    summary="Revoke a token",
    tag="auth",
    method="DELETE",
    paths=("/api/auth/tokens/{id}",),
    example={"id": "9f86d081884c7d659a"},
    replies={200: TokenRevoked, 403: Problem, 404: Problem, **CHANGE_PROBLEMS},
    **ADMIN_CHANGE,
    served_by="writer",
    body_required=False,
)
CREATE_KEY: Final[Operation[CreateApiKeyRequest, ApiKeyIssued]] = Operation(
    name="auth.create_api_key",
    summary="Issue an API key",
    tag="auth",
    method="POST",
    paths=("/api/auth/api-keys",),
    request=CreateApiKeyRequest,
    example={"name": "nightly import", "connector": "openclaw"},
    replies={201: ApiKeyIssued, 403: Problem, **CHANGE_PROBLEMS},
    **ADMIN_CHANGE,
    served_by="writer",
    keyed=False,
)
LIST_KEYS: Final[Operation[OwnAgent, ApiKeysReply]] = Operation(
    name="auth.list_api_keys",
    summary="API keys that were issued",
    tag="auth",
    paths=("/api/auth/api-keys",),
    request=OwnAgent,
    replies={200: ApiKeysReply, 403: Problem, **PROBLEMS},
    permission=Permission.ADMIN,
    owner_only=True,
    served_by="searcher",
)
REVOKE_KEY: Final[Operation[NoFields, TokenRevoked]] = Operation(
    name="auth.revoke_api_key",
    summary="Revoke an API key",
    tag="auth",
    method="DELETE",
    paths=("/api/auth/api-keys/{id}",),
    example={"id": "9f86d081884c7d659a"},
    replies={200: TokenRevoked, 403: Problem, 404: Problem, **CHANGE_PROBLEMS},
    **ADMIN_CHANGE,
    served_by="writer",
    body_required=False,
)
OPERATIONS: Final = (CREATE, LIST, ROTATE, REVOKE, CREATE_KEY, LIST_KEYS, REVOKE_KEY)
