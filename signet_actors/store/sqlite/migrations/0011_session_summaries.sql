-- Ended sessions, and the memories that summarize them.
-- Source: architecture.txt "summary_jobs"; docs/guides/transcripts.md "Summaries".

-- summarized_through: the last turn (session_turns.seq) for which a summary was requested; a later end is about the
-- turns after it.
ALTER TABLE session_transcripts ADD COLUMN ended_at TEXT;
ALTER TABLE session_transcripts ADD COLUMN summarized_through INTEGER;
CREATE INDEX idx_session_transcripts_ended ON session_transcripts (agent_id, ended_at) WHERE ended_at IS NOT NULL;

-- The text of a summary is in its memory. earliest_at, latest_at: when the conversation began and ended. note: the name
-- of its file in the workspace's memory directory.
CREATE TABLE session_summaries (
    memory_id   TEXT PRIMARY KEY,
    session_key TEXT NOT NULL,
    agent_id    TEXT NOT NULL,
    harness     TEXT,
    earliest_at TEXT NOT NULL,
    latest_at   TEXT NOT NULL,
    note        TEXT,
    created_at  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_session_summaries_latest ON session_summaries (agent_id, latest_at);
CREATE INDEX idx_session_summaries_session ON session_summaries (session_key, agent_id);
