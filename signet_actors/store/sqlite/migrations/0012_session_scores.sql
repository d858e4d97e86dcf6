-- How well memory served a session, as a model judged after its end. relevance_score in session_memories has the
-- judgement of each memory.
-- Source: memory-pipeline.txt "Continuity Scoring".

CREATE TABLE session_scores (
    seq                 INTEGER PRIMARY KEY AUTOINCREMENT,
    id                  TEXT NOT NULL UNIQUE,
    session_key         TEXT NOT NULL,
    agent_id            TEXT NOT NULL,
    project             TEXT,
    harness             TEXT,
    score               REAL NOT NULL CHECK (score BETWEEN 0 AND 1),
    confidence          REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    memories_recalled   INTEGER NOT NULL CHECK (memories_recalled >= 0),
    memories_used       INTEGER NOT NULL CHECK (memories_used >= 0),
    novel_context_count INTEGER NOT NULL CHECK (novel_context_count >= 0),
    -- It may quote the session and the memories, so it goes with the transcript and with the first of these memories.
    reasoning           TEXT,
    created_at          TEXT NOT NULL
) STRICT;
CREATE INDEX idx_session_scores_session ON session_scores (session_key, agent_id);
CREATE INDEX idx_session_scores_agent ON session_scores (agent_id, seq);
CREATE INDEX idx_session_scores_created_at ON session_scores (created_at);
