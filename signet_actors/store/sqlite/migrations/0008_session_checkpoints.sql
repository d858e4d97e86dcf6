-- Checkpoints of sessions: what a session was about, for its continuation after a compaction or an end without a report.
-- Source: memory-pipeline.txt "Session Checkpoints".

-- prompt_count: prompts since the previous checkpoint. memory_queries: a JSON array of texts; recent_remembers: one of
-- ids of memories. ended: the session reported its end after this checkpoint or with it.
CREATE TABLE session_checkpoints (
    seq                INTEGER PRIMARY KEY AUTOINCREMENT,
    id                 TEXT NOT NULL UNIQUE,
    session_key        TEXT NOT NULL,
    agent_id           TEXT NOT NULL,
    visibility         TEXT NOT NULL DEFAULT 'private' CHECK (visibility IN ('global', 'private', 'archived')),
    harness            TEXT,
    project            TEXT,
    project_normalized TEXT,
    "trigger"          TEXT NOT NULL
        CHECK ("trigger" IN ('periodic', 'pre_compaction', 'session_end', 'agent', 'explicit')),
    digest             TEXT NOT NULL,
    prompt_count       INTEGER NOT NULL,
    memory_queries     TEXT NOT NULL,
    recent_remembers   TEXT NOT NULL,
    ended              INTEGER NOT NULL CHECK (ended IN (0, 1)),
    created_at         TEXT NOT NULL
) STRICT;
CREATE INDEX idx_session_checkpoints_session ON session_checkpoints (session_key, seq);
CREATE INDEX idx_session_checkpoints_project ON session_checkpoints (project_normalized, seq)
    WHERE project_normalized IS NOT NULL;
CREATE INDEX idx_session_checkpoints_created_at ON session_checkpoints (created_at);
