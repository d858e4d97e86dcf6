-- The pipeline: what a model proposed and what became of it, what its calls cost, and the questions that a memory
-- may answer.
-- Source: memory-pipeline.txt "Worker Model", "Controlled Writes", "Prospective Indexing"; decisions.md 11-18;
-- reliability.md R6, R8.

-- releases: attempts given back because the provider was away. requeues: how often a dead job was revived.
-- leased_version, leased_hash: what the memory was when the job was last handed out.
ALTER TABLE memory_jobs ADD COLUMN releases INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memory_jobs ADD COLUMN requeues INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memory_jobs ADD COLUMN leased_version INTEGER;
ALTER TABLE memory_jobs ADD COLUMN leased_hash TEXT;

-- Only a job that waits has a time before which it may not run.
UPDATE memory_jobs SET available_at = NULL WHERE available_at IS NOT NULL AND status <> 'pending';

-- Jobs that may run at once (NULL, by seq) stand before those that wait for their time, so that a lease never reads
-- past thousands of these.
DROP INDEX idx_memory_jobs_pending;
CREATE INDEX idx_memory_jobs_pending ON memory_jobs (job_type, available_at) WHERE status = 'pending';
DROP INDEX idx_memory_jobs_completed;
CREATE INDEX idx_memory_jobs_completed ON memory_jobs (completed_at, job_type) WHERE status = 'completed';
DROP INDEX idx_memory_jobs_dead;
CREATE INDEX idx_memory_jobs_dead ON memory_jobs (failed_at, job_type) WHERE status = 'dead';

CREATE INDEX idx_memory_history_job ON memory_history (job_id) WHERE job_id IS NOT NULL;

-- One run is one extract job that was carried out: a job completes once, so it has one run.
CREATE TABLE pipeline_runs (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    job_id     TEXT NOT NULL UNIQUE,
    memory_id  TEXT NOT NULL,
    agent_id   TEXT NOT NULL,
    mode       TEXT NOT NULL CHECK (mode IN ('off', 'frozen', 'shadow', 'controlled_write', 'full')),
    provider   TEXT NOT NULL,
    model      TEXT NOT NULL,
    proposals  INTEGER NOT NULL,
    counts     TEXT NOT NULL CHECK (json_valid(counts)),
    created_at TEXT NOT NULL,
    undone_at  TEXT,
    undone_by  TEXT
) STRICT;
CREATE INDEX idx_pipeline_runs_created_at ON pipeline_runs (created_at);
CREATE INDEX idx_pipeline_runs_memory ON pipeline_runs (memory_id);

-- What a model proposed for one fact. The text of the fact stands here and nowhere else beside the memory itself, so
-- that forgetting it for good has one place to look at.
CREATE TABLE memory_proposals (
    seq                     INTEGER PRIMARY KEY AUTOINCREMENT,
    id                      TEXT NOT NULL UNIQUE,
    run_id                  TEXT NOT NULL REFERENCES pipeline_runs (id) ON DELETE CASCADE,
    job_id                  TEXT NOT NULL,
    ordinal                 INTEGER NOT NULL CHECK (ordinal >= 0),
    memory_id               TEXT NOT NULL,
    action                  TEXT NOT NULL CHECK (action IN ('add', 'update', 'delete', 'none')),
    outcome                 TEXT NOT NULL CHECK (outcome IN ('created', 'deduped', 'skipped', 'recorded', 'blocked',
                            'review', 'updated', 'deleted', 'approved', 'rejected', 'undone')),
    reason                  TEXT,
    rationale               TEXT,
    fact_content            TEXT,
    fact_type               TEXT NOT NULL,
    fact_confidence         REAL NOT NULL,
    confidence              REAL NOT NULL,
    target_id               TEXT,
    target_version          INTEGER,
    result_memory_id        TEXT,
    result_version          INTEGER,
    history_id              TEXT NOT NULL,
    syntactic_contradiction INTEGER NOT NULL DEFAULT 0 CHECK (syntactic_contradiction IN (0, 1)),
    semantic_contradiction  INTEGER CHECK (semantic_contradiction IN (0, 1)),
    review_state            TEXT CHECK (review_state IN ('pending', 'approved', 'rejected')),
    reviewed_by             TEXT,
    reviewed_at             TEXT,
    undo_note               TEXT,
    created_at              TEXT NOT NULL,
    UNIQUE (job_id, ordinal)
) STRICT;
CREATE INDEX idx_memory_proposals_run ON memory_proposals (run_id, ordinal);
CREATE INDEX idx_memory_proposals_memory ON memory_proposals (memory_id);
CREATE INDEX idx_memory_proposals_target ON memory_proposals (target_id) WHERE target_id IS NOT NULL;
CREATE INDEX idx_memory_proposals_result ON memory_proposals (result_memory_id) WHERE result_memory_id IS NOT NULL;
CREATE INDEX idx_memory_proposals_review ON memory_proposals (seq) WHERE review_state = 'pending';

-- Counted by UTC day: outcomes, reasons, facts, and what was turned away before it became a proposal.
CREATE TABLE pipeline_counters (
    day   TEXT NOT NULL,
    name  TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (day, name)
) STRICT, WITHOUT ROWID;

-- What a provider's calls cost on a UTC day; the daily caps are held against it.
CREATE TABLE provider_usage (
    day             TEXT NOT NULL,
    provider        TEXT NOT NULL,
    model           TEXT NOT NULL,
    calls           INTEGER NOT NULL DEFAULT 0 CHECK (calls >= 0),
    tokens_in       INTEGER NOT NULL DEFAULT 0 CHECK (tokens_in >= 0),
    tokens_out      INTEGER NOT NULL DEFAULT 0 CHECK (tokens_out >= 0),
    tokens_reserved INTEGER NOT NULL DEFAULT 0 CHECK (tokens_reserved >= 0),
    cost_microusd   INTEGER NOT NULL DEFAULT 0 CHECK (cost_microusd >= 0),
    PRIMARY KEY (day, provider, model)
) STRICT, WITHOUT ROWID;

-- Questions that a memory may answer. They go when the memory goes or says something else, by whatever path.
CREATE TABLE memory_hints (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id  TEXT NOT NULL,
    memory_seq INTEGER NOT NULL,
    hint       TEXT NOT NULL,
    cjk        TEXT,
    created_at TEXT NOT NULL,
    UNIQUE (memory_id, hint)
) STRICT;

CREATE VIRTUAL TABLE memory_hints_fts USING fts5 (
    hint,
    cjk,
    content = 'memory_hints',
    content_rowid = 'seq',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO memory_hints_fts (memory_hints_fts, rank) VALUES ('secure-delete', 1);

CREATE TRIGGER memory_hints_ai AFTER INSERT ON memory_hints BEGIN
    INSERT INTO memory_hints_fts (rowid, hint, cjk) VALUES (new.seq, new.hint, new.cjk);
END;
CREATE TRIGGER memory_hints_ad AFTER DELETE ON memory_hints BEGIN
    INSERT INTO memory_hints_fts (memory_hints_fts, rowid, hint, cjk) VALUES ('delete', old.seq, old.hint, old.cjk);
END;
CREATE TRIGGER memory_hints_outdated AFTER UPDATE OF is_deleted, content_hash ON memories
WHEN new.is_deleted = 1 OR new.content_hash <> old.content_hash BEGIN
    DELETE FROM memory_hints WHERE memory_id = new.id;
END;
CREATE TRIGGER memory_hints_orphaned AFTER DELETE ON memories BEGIN
    DELETE FROM memory_hints WHERE memory_id = old.id;
END;
