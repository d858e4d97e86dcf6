-- The first schema: memories with their search indexes, audit trail, jobs, agents and exactly-once replies.
-- Source: architecture.txt "Database Schema"; decisions.md 3-5, 11-13, 31, 36.

CREATE TABLE store_meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE agents (
    id           TEXT PRIMARY KEY,
    name         TEXT NOT NULL,
    read_policy  TEXT NOT NULL DEFAULT 'shared' CHECK (read_policy IN ('isolated', 'shared', 'group')),
    policy_group TEXT,
    created_at   TEXT NOT NULL,
    updated_at   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- seq orders rows by commit and is never used again; it is the rowid of the search indexes.
CREATE TABLE memories (
    seq                INTEGER PRIMARY KEY AUTOINCREMENT,
    id                 TEXT NOT NULL UNIQUE,
    type               TEXT NOT NULL,
    category           TEXT,
    content            TEXT NOT NULL,
    normalized_content TEXT NOT NULL,
    content_hash       TEXT NOT NULL,
    content_sha256     BLOB NOT NULL,
    cjk                TEXT,
    confidence         REAL,
    importance         REAL NOT NULL CHECK (importance BETWEEN 0.0 AND 1.0),
    source_type        TEXT,
    source_id          TEXT,
    source_path        TEXT,
    runtime_path       TEXT,
    idempotency_key    TEXT,
    session_id         TEXT,
    tags               TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tags)),
    who                TEXT,
    why                TEXT,
    project            TEXT,
    scope              TEXT,
    agent_id           TEXT NOT NULL DEFAULT 'default',
    visibility         TEXT NOT NULL DEFAULT 'global' CHECK (visibility IN ('global', 'private', 'archived')),
    pinned             INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
    is_deleted         INTEGER NOT NULL DEFAULT 0 CHECK (is_deleted IN (0, 1)),
    deleted_at         TEXT,
    extraction_status  TEXT NOT NULL DEFAULT 'none'
                       CHECK (extraction_status IN ('none', 'pending', 'completed', 'failed')),
    extraction_model   TEXT,
    embedding_model    TEXT,
    embedding_seq      INTEGER,
    version            INTEGER NOT NULL DEFAULT 1,
    update_count       INTEGER NOT NULL DEFAULT 0,
    access_count       INTEGER NOT NULL DEFAULT 0,
    injected_count     INTEGER NOT NULL DEFAULT 0,
    last_accessed      TEXT,
    created_at         TEXT NOT NULL,
    updated_at         TEXT NOT NULL,
    updated_by         TEXT,
    CHECK ((is_deleted = 1) = (deleted_at IS NOT NULL))
) STRICT;

CREATE UNIQUE INDEX idx_memories_content_hash_unique
    ON memories (agent_id, visibility, coalesce(project, ''), coalesce(scope, ''), content_hash)
    WHERE is_deleted = 0;
CREATE UNIQUE INDEX idx_memories_idempotency_key_unique
    ON memories (agent_id, visibility, coalesce(project, ''), coalesce(scope, ''), idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX idx_memories_source_id ON memories (source_id) WHERE source_id IS NOT NULL;
CREATE INDEX idx_memories_created_at ON memories (created_at, seq) WHERE is_deleted = 0;
CREATE INDEX idx_memories_deleted_at ON memories (deleted_at) WHERE is_deleted = 1;

-- Tags once more, as rows, so that a tag filter is an index look-up. memories.tags is the truth.
CREATE TABLE memory_tags (
    tag        TEXT NOT NULL,
    memory_seq INTEGER NOT NULL,
    PRIMARY KEY (tag, memory_seq)
) STRICT, WITHOUT ROWID;

-- Only live rows are indexed: a 'rebuild' must not bring deleted text back (decisions.md 36).
CREATE VIEW memories_live AS
    SELECT seq, content, cjk FROM memories WHERE is_deleted = 0;

CREATE VIRTUAL TABLE memories_fts USING fts5 (
    content,
    cjk,
    content = 'memories_live',
    content_rowid = 'seq',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO memories_fts (memories_fts, rank) VALUES ('secure-delete', 1);
CREATE VIRTUAL TABLE memories_fts_terms USING fts5vocab ('memories_fts', 'row');

CREATE TRIGGER memories_ai AFTER INSERT ON memories WHEN new.is_deleted = 0 BEGIN
    INSERT INTO memories_fts (rowid, content, cjk) VALUES (new.seq, new.content, new.cjk);
END;
CREATE TRIGGER memories_ad AFTER DELETE ON memories WHEN old.is_deleted = 0 BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, content, cjk) VALUES ('delete', old.seq, old.content, old.cjk);
END;
-- One trigger, because the order of two would be undefined: the old text goes before the new one comes.
CREATE TRIGGER memories_au AFTER UPDATE OF content, cjk, is_deleted ON memories BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, content, cjk)
        SELECT 'delete', old.seq, old.content, old.cjk WHERE old.is_deleted = 0;
    INSERT INTO memories_fts (rowid, content, cjk)
        SELECT new.seq, new.content, new.cjk WHERE new.is_deleted = 0;
END;

-- What changed in rows that searchers may already hold in memory. New rows need no entry: their seq is higher.
CREATE TABLE memory_changes (
    change     INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_seq INTEGER NOT NULL
) STRICT;
CREATE TRIGGER memories_changed AFTER UPDATE OF
    type, importance, source_type, tags, who, project, scope, agent_id, visibility, pinned, is_deleted, embedding_seq,
    created_at ON memories
BEGIN
    INSERT INTO memory_changes (memory_seq) VALUES (new.seq);
END;
CREATE TRIGGER memories_removed AFTER DELETE ON memories BEGIN
    INSERT INTO memory_changes (memory_seq) VALUES (old.seq);
END;

-- The source of truth of all vectors; every index over them is a cache (decisions.md 5).
CREATE TABLE embeddings (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    source_type  TEXT NOT NULL,
    source_id    TEXT NOT NULL,
    model        TEXT NOT NULL,
    dimensions   INTEGER NOT NULL,
    vector       BLOB NOT NULL,
    content_hash TEXT NOT NULL,
    created_at   TEXT NOT NULL,
    UNIQUE (source_type, source_id, model)
) STRICT;
CREATE INDEX idx_embeddings_model ON embeddings (model, dimensions, seq);

CREATE TABLE embedding_models (
    id         INTEGER PRIMARY KEY,
    model      TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (model, dimensions)
) STRICT;

CREATE TABLE memory_history (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL,
    memory_id   TEXT NOT NULL,
    event       TEXT NOT NULL,
    old_content TEXT,
    new_content TEXT,
    changed_by  TEXT NOT NULL,
    actor_type  TEXT,
    reason      TEXT,
    metadata    TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
    session_id  TEXT,
    request_id  TEXT,
    job_id      TEXT,
    created_at  TEXT NOT NULL
) STRICT;
CREATE INDEX idx_memory_history_memory ON memory_history (memory_id, seq);
CREATE INDEX idx_memory_history_created_at ON memory_history (created_at);

CREATE TABLE memory_jobs (
    seq              INTEGER PRIMARY KEY AUTOINCREMENT,
    id               TEXT NOT NULL UNIQUE,
    job_type         TEXT NOT NULL,
    status           TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'leased', 'completed', 'dead')),
    memory_id        TEXT,
    document_id      TEXT,
    payload          TEXT,
    result           TEXT,
    attempts         INTEGER NOT NULL DEFAULT 0,
    max_attempts     INTEGER NOT NULL DEFAULT 3,
    available_at     TEXT,
    lease_id         TEXT,
    lease_boot       TEXT,
    lease_expires_ns INTEGER,
    leased_at        TEXT,
    completed_at     TEXT,
    failed_at        TEXT,
    error            TEXT,
    created_at       TEXT NOT NULL,
    updated_at       TEXT NOT NULL
) STRICT;
CREATE INDEX idx_memory_jobs_pending ON memory_jobs (job_type, seq) WHERE status = 'pending';
CREATE INDEX idx_memory_jobs_leased ON memory_jobs (lease_expires_ns) WHERE status = 'leased';
CREATE INDEX idx_memory_jobs_memory ON memory_jobs (memory_id);
CREATE INDEX idx_memory_jobs_completed ON memory_jobs (completed_at) WHERE status = 'completed';
CREATE INDEX idx_memory_jobs_dead ON memory_jobs (failed_at) WHERE status = 'dead';

CREATE TABLE temporal_edges (
    id           INTEGER PRIMARY KEY,
    subject_type TEXT NOT NULL,
    subject_id   TEXT NOT NULL,
    facet        TEXT NOT NULL CHECK (facet IN ('session', 'source', 'captured', 'observed', 'occurred', 'valid')),
    start_at     TEXT,
    end_at       TEXT,
    confidence   REAL NOT NULL DEFAULT 1.0,
    created_at   TEXT NOT NULL
) STRICT;
CREATE INDEX idx_temporal_edges_subject ON temporal_edges (subject_type, subject_id);
CREATE INDEX idx_temporal_edges_start ON temporal_edges (facet, start_at);

-- The answer to each command, kept for some minutes: a retry gets the first answer (decisions.md 3).
CREATE TABLE request_replies (
    request_id  TEXT PRIMARY KEY,
    body_digest TEXT,
    reply       BLOB NOT NULL,
    created_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_request_replies_created ON request_replies (created_ms);

-- The knowledge graph's nodes and edges. Purging a memory takes its mentions with it.
CREATE TABLE entities (
    id             TEXT PRIMARY KEY,
    name           TEXT NOT NULL,
    canonical_name TEXT NOT NULL,
    entity_type    TEXT NOT NULL,
    agent_id       TEXT NOT NULL DEFAULT 'default',
    description    TEXT,
    mentions       INTEGER NOT NULL DEFAULT 0 CHECK (mentions >= 0),
    pinned         INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
    pinned_at      TEXT,
    created_at     TEXT NOT NULL,
    updated_at     TEXT NOT NULL,
    UNIQUE (agent_id, canonical_name)
) STRICT, WITHOUT ROWID;

CREATE TABLE relations (
    id               TEXT PRIMARY KEY,
    source_entity_id TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
    target_entity_id TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
    relation_type    TEXT NOT NULL,
    strength         REAL NOT NULL DEFAULT 1.0,
    mentions         INTEGER NOT NULL DEFAULT 1,
    confidence       REAL NOT NULL DEFAULT 0.5,
    metadata         TEXT,
    created_at       TEXT NOT NULL,
    updated_at       TEXT NOT NULL,
    UNIQUE (source_entity_id, target_entity_id, relation_type)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_relations_target ON relations (target_entity_id);

CREATE TABLE memory_entity_mentions (
    memory_id    TEXT NOT NULL,
    entity_id    TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
    mention_text TEXT,
    confidence   REAL,
    created_at   TEXT NOT NULL,
    PRIMARY KEY (memory_id, entity_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_memory_entity_mentions_entity ON memory_entity_mentions (entity_id);
