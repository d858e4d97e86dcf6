-- The digest of the file with a summary, as it was written: a file that is still the same goes with its summary.
-- Source: docs/guides/transcripts.md "Summaries".

ALTER TABLE session_summaries ADD COLUMN note_digest TEXT;
