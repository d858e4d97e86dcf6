-- A session that was resumed or forked begins with turns of another one. name: the turn by its id in the file of the
-- program, as a digest. copy_of: seq of the same turn in the session of the agent that had it first.
-- Source: docs/guides/transcripts.md "Copied turns".

ALTER TABLE session_turns ADD COLUMN name BLOB;
ALTER TABLE session_turns ADD COLUMN copy_of INTEGER;
CREATE INDEX idx_session_turns_name ON session_turns (name) WHERE name IS NOT NULL;
CREATE INDEX idx_session_turns_copy ON session_turns (transcript_seq, copy_of) WHERE copy_of IS NOT NULL;
