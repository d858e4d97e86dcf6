-- Transcripts of sessions and the turns in them. A session's key is the agent's: two agents may use the same one.
-- Source: architecture.txt "session_transcripts"; memory-pipeline.txt "Lossless Session Transcripts".

CREATE TABLE session_transcripts (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    session_key  TEXT NOT NULL,
    agent_id     TEXT NOT NULL DEFAULT 'default',
    visibility   TEXT NOT NULL DEFAULT 'private' CHECK (visibility IN ('global', 'private', 'archived')),
    harness      TEXT,
    project      TEXT,
    format       TEXT NOT NULL,
    created_at   TEXT NOT NULL,
    updated_at   TEXT NOT NULL,
    -- The transcript was forgotten: it has no turns, and a later capture of the session stores none.
    forgotten_at TEXT,
    UNIQUE (agent_id, session_key)
) STRICT;
CREATE INDEX idx_session_transcripts_project ON session_transcripts (project) WHERE project IS NOT NULL;
CREATE INDEX idx_session_transcripts_updated_at ON session_transcripts (updated_at);
CREATE INDEX idx_session_transcripts_forgotten ON session_transcripts (seq) WHERE forgotten_at IS NOT NULL;

-- In the order in which they were said, which is that of seq. A long turn is several rows; all but the first continue.
CREATE TABLE session_turns (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    transcript_seq INTEGER NOT NULL REFERENCES session_transcripts (seq),
    turn_key       BLOB NOT NULL,
    role           TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'system', 'text')),
    content        TEXT NOT NULL,
    cjk            TEXT,
    continues      INTEGER NOT NULL DEFAULT 0 CHECK (continues IN (0, 1)),
    said_at        TEXT,
    created_at     TEXT NOT NULL,
    UNIQUE (transcript_seq, turn_key)
) STRICT;
CREATE INDEX idx_session_turns_transcript ON session_turns (transcript_seq, seq);

CREATE VIRTUAL TABLE session_turns_fts USING fts5 (
    content,
    cjk,
    content = 'session_turns',
    content_rowid = 'seq',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO session_turns_fts (session_turns_fts, rank) VALUES ('secure-delete', 1);

CREATE TRIGGER session_turns_ai AFTER INSERT ON session_turns BEGIN
    INSERT INTO session_turns_fts (rowid, content, cjk) VALUES (new.seq, new.content, new.cjk);
END;
CREATE TRIGGER session_turns_ad AFTER DELETE ON session_turns BEGIN
    INSERT INTO session_turns_fts (session_turns_fts, rowid, content, cjk)
        VALUES ('delete', old.seq, old.content, old.cjk);
END;
-- One trigger, because the order of two would be undefined: the old text goes before the new one comes.
CREATE TRIGGER session_turns_au AFTER UPDATE OF content, cjk ON session_turns BEGIN
    INSERT INTO session_turns_fts (session_turns_fts, rowid, content, cjk)
        VALUES ('delete', old.seq, old.content, old.cjk);
    INSERT INTO session_turns_fts (rowid, content, cjk) VALUES (new.seq, new.content, new.cjk);
END;
