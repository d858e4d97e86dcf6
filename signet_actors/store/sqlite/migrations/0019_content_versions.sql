-- In which words a session has received a memory, so that it receives it again after an edit.
-- content_version: the version of the memory since which it has its words; a recovery counts, too.
-- Source: docs/guides/hooks.md "What a session has received".

ALTER TABLE memories ADD COLUMN content_version INTEGER NOT NULL DEFAULT 1;
ALTER TABLE session_recalls ADD COLUMN content_version INTEGER NOT NULL DEFAULT 1;

-- The sessions of a project that were active last: with one of them that crashed, the next one goes on.
CREATE INDEX idx_session_contexts_project ON session_contexts (agent_id, project, last_active_at) WHERE project IS NOT NULL;
