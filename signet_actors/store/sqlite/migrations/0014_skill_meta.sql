-- How often an agent used each skill, as its harness reports it.
-- Source: architecture.txt "skill_meta".

CREATE TABLE skill_meta (
    agent_id         TEXT NOT NULL,
    skill_name       TEXT NOT NULL,
    use_count        INTEGER NOT NULL CHECK (use_count > 0),
    failure_count    INTEGER NOT NULL CHECK (failure_count >= 0),
    -- Of the last use whose duration was reported.
    last_duration_ms INTEGER,
    created_at       TEXT NOT NULL,
    last_used_at     TEXT NOT NULL,
    PRIMARY KEY (agent_id, skill_name)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_skill_meta_last_used_at ON skill_meta (agent_id, last_used_at);
