-- Sessions of harnesses, and which memories each of them has received since its last compaction.
-- Source: memory-api.txt "POST /api/memory/recall" (context ledger); docs/decisions.md 60.

-- context_epoch counts the compactions. A session that is bypassed receives nothing.
CREATE TABLE session_contexts (
    session_key    TEXT NOT NULL,
    agent_id       TEXT NOT NULL,
    context_epoch  INTEGER NOT NULL,
    harness        TEXT,
    project        TEXT,
    bypassed       INTEGER NOT NULL,
    started_at     TEXT NOT NULL,
    last_active_at TEXT NOT NULL,
    PRIMARY KEY (session_key, agent_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_session_contexts_agent ON session_contexts (agent_id, last_active_at);
CREATE INDEX idx_session_contexts_active ON session_contexts (last_active_at);

-- request_key: the request whose response contained the memory, if it had a key; a retry of it gets the memory again.
CREATE TABLE session_recalls (
    session_key   TEXT NOT NULL,
    agent_id      TEXT NOT NULL,
    context_epoch INTEGER NOT NULL,
    memory_id     TEXT NOT NULL,
    request_key   TEXT,
    recalled_at   TEXT NOT NULL,
    PRIMARY KEY (session_key, agent_id, context_epoch, memory_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_session_recalls_recalled_at ON session_recalls (recalled_at);

-- The memories that were recalled last have lost the least of their importance.
CREATE INDEX idx_memories_last_accessed ON memories (last_accessed) WHERE is_deleted = 0 AND last_accessed IS NOT NULL;
