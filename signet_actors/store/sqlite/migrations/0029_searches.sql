-- What sessions and other callers asked for, what each was given, and what was left out and why.
-- Source: docs/guides/hooks.md "What was asked and given".

-- kind: start and prompt are hooks, tool is a recall by an agent's tool. prompt: the beginning of what was asked, without
-- secrets; NULL if that is erased. given: the memories that were given. skipped: why a hook did nothing. context_epoch:
-- that of the session then.
CREATE TABLE searches (
    seq           INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    created_at    TEXT NOT NULL,
    kind          TEXT NOT NULL CHECK (kind IN ('start', 'prompt', 'recall', 'tool')),
    agent_id      TEXT NOT NULL,
    session_key   TEXT,
    context_epoch INTEGER,
    project       TEXT,
    harness       TEXT,
    prompt        TEXT,
    skipped       TEXT,
    given         INTEGER NOT NULL CHECK (given >= 0),
    characters    INTEGER NOT NULL CHECK (characters >= 0),
    duration_ms   REAL NOT NULL CHECK (duration_ms >= 0)
) STRICT;
CREATE INDEX idx_searches_agent ON searches (agent_id);
CREATE INDEX idx_searches_created_at ON searches (created_at);
CREATE INDEX idx_searches_session ON searches (session_key, agent_id) WHERE session_key IS NOT NULL;

-- The memories of a search, the best first. content_version: since when the memory had these words. relevance: NULL where
-- none was measured. outcome: given, or why it was left out.
CREATE TABLE search_rows (
    search_seq      INTEGER NOT NULL REFERENCES searches (seq) ON DELETE CASCADE,
    place           INTEGER NOT NULL CHECK (place > 0),
    memory_id       TEXT NOT NULL,
    content_version INTEGER NOT NULL,
    relevance       REAL CHECK (relevance BETWEEN 0 AND 1),
    outcome         TEXT NOT NULL,
    PRIMARY KEY (search_seq, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_search_rows_memory ON search_rows (memory_id);
