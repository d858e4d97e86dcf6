-- In which context epoch a session last received the text of its start, and the key of that request, if it had one.
-- Source: docs/guides/hooks.md "The start of a session".

ALTER TABLE session_contexts ADD COLUMN started_epoch INTEGER;
ALTER TABLE session_contexts ADD COLUMN start_key TEXT;

-- Only the start of a session stored the name of the harness.
UPDATE session_contexts SET started_epoch = context_epoch WHERE harness IS NOT NULL;
