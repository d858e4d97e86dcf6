-- Which memories a session was offered, what it was shown of them, and what its agent said about them.
-- Source: memory-pipeline.txt "Continuity Scoring", "Aspect Feedback"; architecture.txt "agent_feedback".

-- rank: the place among the memories of its source, 1 is the best. fts_hit_count: searches of the session whose words
-- the memory matched. relevance_score: how much it helped, by the continuity scoring; NULL until then.
CREATE TABLE session_memories (
    session_key     TEXT NOT NULL,
    agent_id        TEXT NOT NULL,
    memory_id       TEXT NOT NULL,
    source          TEXT NOT NULL CHECK (source IN ('session_start', 'prompt', 'recall')),
    rank            INTEGER NOT NULL CHECK (rank > 0),
    was_injected    INTEGER NOT NULL CHECK (was_injected IN (0, 1)),
    fts_hit_count   INTEGER NOT NULL DEFAULT 0 CHECK (fts_hit_count >= 0),
    relevance_score REAL CHECK (relevance_score BETWEEN 0 AND 1),
    created_at      TEXT NOT NULL,
    PRIMARY KEY (session_key, agent_id, memory_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_session_memories_memory ON session_memories (memory_id);
CREATE INDEX idx_session_memories_created_at ON session_memories (created_at);

-- score: the mean of all ratings by the session's agent. actor: who gave the last one.
CREATE TABLE agent_feedback (
    session_key   TEXT NOT NULL,
    agent_id      TEXT NOT NULL,
    memory_id     TEXT NOT NULL,
    feedback_type TEXT NOT NULL CHECK (feedback_type IN ('positive', 'negative', 'neutral')),
    score         REAL NOT NULL CHECK (score BETWEEN -1 AND 1),
    rating_count  INTEGER NOT NULL CHECK (rating_count > 0),
    actor         TEXT NOT NULL,
    created_at    TEXT NOT NULL,
    updated_at    TEXT NOT NULL,
    PRIMARY KEY (session_key, agent_id, memory_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_agent_feedback_memory ON agent_feedback (memory_id);
CREATE INDEX idx_agent_feedback_updated_at ON agent_feedback (updated_at);
