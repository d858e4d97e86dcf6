-- Sessions that have not reported their end, so that one that falls silent is ended and summarized.
-- Source: docs/guides/transcripts.md "Summaries".

-- open_at: when a hook told last that the session goes on; NULL after its end, and for one of the past. end_reason: idle
-- if it fell silent, NULL if it reported its end.
ALTER TABLE session_transcripts ADD COLUMN open_at TEXT;
ALTER TABLE session_transcripts ADD COLUMN end_reason TEXT;
CREATE INDEX idx_session_transcripts_open ON session_transcripts (open_at) WHERE open_at IS NOT NULL;
