-- The writer's statements about one row stay short: the text index has only the beginning of a long memory, and the
-- indexes of sources and of deleted contents have the scope.
-- signet_indexed_beside: a function that the upgrade provides (schema.py).
-- Source: docs/operations.md "Long texts"; INDEXED_CHARS in domain/written_forms.py.

DROP TRIGGER memories_ai;
DROP TRIGGER memories_ad;
DROP TRIGGER memories_au;
DROP VIEW memories_live;
UPDATE memories SET cjk = signet_indexed_beside(substr(content, 1, 16000)) WHERE octet_length(content) > 16000;
CREATE VIEW memories_live AS
    SELECT seq, substr(content, 1, 16000) AS content, cjk FROM memories WHERE is_deleted = 0;
-- To index everything again is faster than to take some long rows out of the index.
INSERT INTO memories_fts (memories_fts)
    SELECT 'rebuild' WHERE EXISTS (SELECT 1 FROM memories WHERE octet_length(content) > 16000 AND is_deleted = 0);

CREATE TRIGGER memories_ai AFTER INSERT ON memories WHEN new.is_deleted = 0 BEGIN
    INSERT INTO memories_fts (rowid, content, cjk) VALUES (new.seq, substr(new.content, 1, 16000), new.cjk);
END;
CREATE TRIGGER memories_ad AFTER DELETE ON memories WHEN old.is_deleted = 0 BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, content, cjk)
        VALUES ('delete', old.seq, substr(old.content, 1, 16000), old.cjk);
END;
-- One trigger, because the order of two would be undefined: the old text goes before the new one comes.
CREATE TRIGGER memories_au AFTER UPDATE OF content, cjk, is_deleted ON memories BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, content, cjk)
        SELECT 'delete', old.seq, substr(old.content, 1, 16000), old.cjk WHERE old.is_deleted = 0;
    INSERT INTO memories_fts (rowid, content, cjk)
        SELECT new.seq, substr(new.content, 1, 16000), new.cjk WHERE new.is_deleted = 0;
END;

-- By all that a look-up names: many rows may have the same source, and many be deleted.
DROP INDEX idx_memories_source_id;
CREATE INDEX idx_memories_source_id ON memories (
    source_id, agent_id, visibility, coalesce(project, ''), coalesce(scope, ''), is_deleted, source_type
) WHERE source_id IS NOT NULL;
CREATE INDEX idx_memories_deleted_content ON memories (
    agent_id, visibility, coalesce(project, ''), coalesce(scope, ''), content_hash
) WHERE is_deleted = 1;
DROP INDEX idx_chunk_groups_content_hash;
CREATE INDEX idx_chunk_groups_content_hash ON chunk_groups (
    content_hash, agent_id, visibility, coalesce(project, ''), coalesce(scope, '')
) WHERE content_hash IS NOT NULL;
DROP INDEX idx_chunk_groups_source_id;
CREATE INDEX idx_chunk_groups_source_id ON chunk_groups (
    source_id, agent_id, visibility, coalesce(project, ''), coalesce(scope, '')
) WHERE source_id IS NOT NULL;
