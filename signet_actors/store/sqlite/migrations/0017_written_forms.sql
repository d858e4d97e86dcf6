-- What is compared and searched beside the text of a memory, by the rules of the release that runs this: its normalized
-- form and hash (a question is no statement, code points do not count), and the words that are derived from it.
-- signet_*: functions that the upgrade provides (schema.py). A row keeps its former hash if another live one has the new.
-- Source: docs/quality.md "Other spellings"; docs/operations.md "What is kept of a text".

-- The content stays, so its hints do.
DROP TRIGGER memory_hints_outdated;
UPDATE OR IGNORE memories SET normalized_content = signet_normalized(content), content_hash = signet_hash(content)
    WHERE content_hash <> signet_hash(content);
CREATE TRIGGER memory_hints_outdated AFTER UPDATE OF is_deleted, content_hash ON memories
WHEN new.is_deleted = 1 OR new.content_hash <> old.content_hash BEGIN
    DELETE FROM memory_hints WHERE memory_id = new.id;
END;

UPDATE embeddings SET content_hash = (SELECT m.content_hash FROM memories m WHERE m.id = embeddings.source_id)
    WHERE source_type = 'memory' AND EXISTS (
        SELECT 1 FROM memories m WHERE m.id = embeddings.source_id AND m.content_hash <> embeddings.content_hash
            AND signet_former_hash(m.content) = embeddings.content_hash);

-- The whole text is not stored; a group without a hash is found by its first chunk.
UPDATE chunk_groups SET content_hash = NULL WHERE content_hash IS NOT NULL;

UPDATE memories SET cjk = signet_indexed_beside(content) WHERE cjk IS NOT signet_indexed_beside(content);
