-- Tokens and API keys that were issued: what is not here, or is revoked, is not accepted.
-- Source: docs/compatibility.md "Authentication".

CREATE TABLE auth_tokens (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('token', 'api_key')),
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    project TEXT,
    agent_id TEXT,
    user_name TEXT,
    connector TEXT,
    secret_hash BLOB,
    created_at TEXT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at TEXT,
    revoked_at TEXT
) STRICT, WITHOUT ROWID;
