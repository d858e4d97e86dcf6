-- What was said while memory was off for a session is never stored, also if it is on again, and no copy of it.
-- Source: docs/guides/hooks.md "Sessions".

-- ended_at: NULL while memory is off. A session that was off before this schema was so from its beginning.
CREATE TABLE session_pauses (
    session_key TEXT NOT NULL,
    began_at    TEXT NOT NULL,
    ended_at    TEXT,
    PRIMARY KEY (session_key, began_at)
) STRICT, WITHOUT ROWID;
INSERT INTO session_pauses (session_key, began_at)
    SELECT c.session_key, min(c.started_at) FROM session_contexts c WHERE c.bypassed = 1 GROUP BY c.session_key;

-- mark: of a turn that was left out, the digest by which a session that was forked or resumed has it, too.
CREATE TABLE left_out_turns (mark BLOB NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
