-- When a memory was given its present words, if that was not when it was created: an edit is what somebody says now.
-- Source: docs/quality.md "Versions of a fact".

ALTER TABLE memories ADD COLUMN content_at TEXT;
UPDATE memories SET content_at = (
    SELECT max(h.created_at) FROM memory_history h
    WHERE h.memory_id = memories.id AND h.event = 'updated' AND h.old_content <> h.new_content
) WHERE version > 1;
CREATE INDEX idx_memories_content_at ON memories (content_at) WHERE content_at IS NOT NULL;
