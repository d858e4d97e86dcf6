-- The parts of a long text are one group: an entity that its parts are linked to, and what was said of the whole text.
-- Source: memory-pipeline "Configuration Reference" (guardrails); docs/operations.md "Long texts".

-- content_hash is of the whole text (NULL for groups of earlier releases), source_type and source_id are the caller's.
CREATE TABLE chunk_groups (
    id           TEXT PRIMARY KEY REFERENCES entities (id) ON DELETE CASCADE,
    agent_id     TEXT NOT NULL,
    visibility   TEXT NOT NULL,
    project      TEXT,
    scope        TEXT,
    content_hash TEXT,
    source_type  TEXT,
    source_id    TEXT,
    created_at   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_chunk_groups_content_hash ON chunk_groups (content_hash) WHERE content_hash IS NOT NULL;
CREATE INDEX idx_chunk_groups_source_id ON chunk_groups (source_id) WHERE source_id IS NOT NULL;

-- Groups of earlier releases had an id and nothing else. A caller may have named a source type "chunk" of his own: only
-- what bears an id of ours, in one place, is taken for a group.
CREATE TEMP TABLE former_groups AS
    SELECT source_id AS id, min(agent_id) AS agent_id, min(visibility) AS visibility, min(project) AS project,
        min(scope) AS scope, count(*) AS parts, min(created_at) AS created_at
    FROM memories
    WHERE source_type = 'chunk' AND source_id GLOB '????????-????-7???-????-????????????'
    GROUP BY source_id
    HAVING count(DISTINCT agent_id) = 1 AND count(DISTINCT visibility) = 1
        AND count(DISTINCT coalesce(project, '')) = 1 AND count(DISTINCT coalesce(scope, '')) = 1
        AND source_id NOT IN (SELECT e.id FROM entities e);
INSERT INTO entities (id, name, canonical_name, entity_type, agent_id, mentions, created_at, updated_at)
    SELECT id, 'chunk group ' || id, 'chunk group ' || id, 'chunk_group', agent_id, parts, created_at, created_at
    FROM former_groups;
INSERT INTO chunk_groups (id, agent_id, visibility, project, scope, created_at)
    SELECT id, agent_id, visibility, project, scope, created_at FROM former_groups;
INSERT INTO memory_entity_mentions (memory_id, entity_id, created_at)
    SELECT m.id, g.id, m.created_at FROM memories m JOIN former_groups g ON g.id = m.source_id
    WHERE m.source_type = 'chunk';
DROP TABLE former_groups;
