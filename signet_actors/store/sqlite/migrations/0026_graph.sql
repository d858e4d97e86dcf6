-- The knowledge graph: what memories say about entities, arranged by aspects. Each row belongs to one agent.
-- Source: knowledge-graph.txt "Data Model"; architecture.txt "Database Schema"; docs/decisions.md 68.
--
-- What a memory contributes is one row of it each (a mention, a relation that it states, an attribute). Counts, strengths
-- and the status of attributes follow from the rows of live memories, so that a memory that goes or comes back leaves
-- the graph as if it had been made from the memories that there are.

-- merged_into: the entity that this one is another name of; what belongs to this one then counts as that one's.
-- merge_parent: the entity into which it was merged itself, which may have been merged into that one later.
ALTER TABLE entities ADD COLUMN embedding BLOB;
ALTER TABLE entities ADD COLUMN community_id TEXT;
ALTER TABLE entities ADD COLUMN merged_into TEXT;
ALTER TABLE entities ADD COLUMN merge_parent TEXT;
CREATE INDEX idx_entities_merged_into ON entities (merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX idx_entities_listed ON entities (agent_id, pinned, pinned_at, mentions);

CREATE TABLE entity_aspects (
    id             TEXT PRIMARY KEY,
    entity_id      TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
    agent_id       TEXT NOT NULL,
    name           TEXT NOT NULL,
    canonical_name TEXT NOT NULL,
    description    TEXT,
    confidence     REAL,
    weight         REAL NOT NULL DEFAULT 0.5 CHECK (weight BETWEEN 0.0 AND 1.0),
    created_at     TEXT NOT NULL,
    updated_at     TEXT NOT NULL,
    UNIQUE (entity_id, canonical_name)
) STRICT, WITHOUT ROWID;

-- aspect_id: NULL until a model has classified the attribute. source: who made it. source_at: the time of the memory,
-- by which of two claims is the newer one. superseded_how: 'claim', 'negation', 'antonym', 'value', 'temporal',
-- 'semantic', or NULL.
CREATE TABLE entity_attributes (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT NOT NULL UNIQUE,
    entity_id      TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
    aspect_id      TEXT REFERENCES entity_aspects (id) ON DELETE CASCADE,
    agent_id       TEXT NOT NULL,
    memory_id      TEXT NOT NULL,
    content        TEXT NOT NULL,
    kind           TEXT NOT NULL DEFAULT 'attribute' CHECK (kind IN ('attribute', 'constraint')),
    status         TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'superseded', 'deleted')),
    group_key      TEXT,
    claim_key      TEXT,
    confidence     REAL NOT NULL DEFAULT 0.0,
    importance     REAL NOT NULL DEFAULT 0.5,
    source         TEXT NOT NULL CHECK (source IN ('structured', 'linker', 'pipeline')),
    source_at      TEXT NOT NULL,
    superseded_by  TEXT,
    superseded_how TEXT,
    created_at     TEXT NOT NULL,
    updated_at     TEXT NOT NULL
) STRICT;
CREATE INDEX idx_entity_attributes_aspect ON entity_attributes (aspect_id, status);
CREATE INDEX idx_entity_attributes_entity ON entity_attributes (entity_id, status);
CREATE INDEX idx_entity_attributes_memory ON entity_attributes (memory_id);
CREATE INDEX idx_entity_attributes_superseded_by ON entity_attributes (superseded_by) WHERE superseded_by IS NOT NULL;

-- Which memories state a relation, each with its confidence: relations.mentions and .confidence are their count and mean.
CREATE TABLE memory_relation_mentions (
    memory_id   TEXT NOT NULL,
    relation_id TEXT NOT NULL REFERENCES relations (id) ON DELETE CASCADE,
    confidence  REAL NOT NULL,
    created_at  TEXT NOT NULL,
    PRIMARY KEY (memory_id, relation_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_memory_relation_mentions_relation ON memory_relation_mentions (relation_id);

-- Made from relations: a dependency is there as long as a relation between the same two entities implies it.
CREATE TABLE entity_dependencies (
    id               TEXT PRIMARY KEY,
    agent_id         TEXT NOT NULL,
    source_entity_id TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
    target_entity_id TEXT NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
    dependency_type  TEXT NOT NULL,
    strength         REAL NOT NULL DEFAULT 0.5,
    aspect_id        TEXT,
    metadata         TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
    created_at       TEXT NOT NULL,
    updated_at       TEXT NOT NULL,
    UNIQUE (source_entity_id, target_entity_id, dependency_type)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_entity_dependencies_target ON entity_dependencies (target_entity_id);
CREATE INDEX idx_entity_dependencies_agent ON entity_dependencies (agent_id);

-- label: the name of its most mentioned entity. cohesion: the share of the weight of its edges that stays inside it.
CREATE TABLE entity_communities (
    id         TEXT PRIMARY KEY,
    agent_id   TEXT NOT NULL,
    label      TEXT NOT NULL,
    size       INTEGER NOT NULL,
    cohesion   REAL NOT NULL,
    quality    TEXT NOT NULL CHECK (quality IN ('fragmented', 'moderate', 'strong')),
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_entity_communities_agent ON entity_communities (agent_id);

-- Pins are entities.pinned and pinned_at; this table has what lowers or raises an entity in traversal.
CREATE TABLE entity_pinning (
    entity_id       TEXT PRIMARY KEY REFERENCES entities (id) ON DELETE CASCADE,
    pin_type        TEXT NOT NULL CHECK (pin_type IN ('pin', 'suppress')),
    weight_override REAL CHECK (weight_override IS NULL OR weight_override BETWEEN 0.0 AND 1.0),
    reason          TEXT,
    created_at      TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE task_meta (
    entity_id    TEXT PRIMARY KEY REFERENCES entities (id) ON DELETE CASCADE,
    task_type    TEXT,
    priority     TEXT,
    status       TEXT,
    due_at       TEXT,
    context_json TEXT CHECK (context_json IS NULL OR json_valid(context_json))
) STRICT, WITHOUT ROWID;

-- Which entities a session was about, as JSON arrays of ids and names: a later session in the project begins with them.
ALTER TABLE session_checkpoints ADD COLUMN focal_entity_ids TEXT;
ALTER TABLE session_checkpoints ADD COLUMN focal_entity_names TEXT;

-- What changed in the graph that searchers hold in memory. kind 'memory': mentions or attributes of the memory with this
-- id; 'entity': the row, aspects, edges or pinning of the entity. entities.mentions changes without an entry.
CREATE TABLE graph_changes (
    change INTEGER PRIMARY KEY AUTOINCREMENT,
    kind   TEXT NOT NULL CHECK (kind IN ('memory', 'entity')),
    id     TEXT NOT NULL
) STRICT;
CREATE TRIGGER graph_mention_added AFTER INSERT ON memory_entity_mentions BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('memory', new.memory_id);
END;
CREATE TRIGGER graph_mention_removed AFTER DELETE ON memory_entity_mentions BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('memory', old.memory_id);
END;
CREATE TRIGGER graph_attribute_added AFTER INSERT ON entity_attributes BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('memory', new.memory_id);
END;
CREATE TRIGGER graph_attribute_changed AFTER UPDATE OF
    aspect_id, content, kind, status, importance ON entity_attributes
BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('memory', new.memory_id);
END;
CREATE TRIGGER graph_attribute_removed AFTER DELETE ON entity_attributes BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('memory', old.memory_id);
END;
CREATE TRIGGER graph_entity_added AFTER INSERT ON entities WHEN new.entity_type <> 'chunk_group' BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('entity', new.id);
END;
CREATE TRIGGER graph_entity_changed AFTER UPDATE OF
    name, canonical_name, entity_type, pinned, merged_into, community_id ON entities
BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('entity', new.id);
END;
CREATE TRIGGER graph_entity_removed AFTER DELETE ON entities WHEN old.entity_type <> 'chunk_group' BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('entity', old.id);
END;
CREATE TRIGGER graph_aspect_added AFTER INSERT ON entity_aspects BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('entity', new.entity_id);
END;
CREATE TRIGGER graph_aspect_changed AFTER UPDATE OF name, weight ON entity_aspects BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('entity', new.entity_id);
END;
CREATE TRIGGER graph_aspect_removed AFTER DELETE ON entity_aspects BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('entity', old.entity_id);
END;
CREATE TRIGGER graph_dependency_added AFTER INSERT ON entity_dependencies BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('entity', new.source_entity_id);
END;
CREATE TRIGGER graph_dependency_changed AFTER UPDATE OF strength ON entity_dependencies BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('entity', new.source_entity_id);
END;
CREATE TRIGGER graph_dependency_removed AFTER DELETE ON entity_dependencies BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('entity', old.source_entity_id);
END;
CREATE TRIGGER graph_relation_added AFTER INSERT ON relations BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('entity', new.source_entity_id), ('entity', new.target_entity_id);
END;
CREATE TRIGGER graph_relation_removed AFTER DELETE ON relations BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('entity', old.source_entity_id), ('entity', old.target_entity_id);
END;
CREATE TRIGGER graph_pinning_added AFTER INSERT ON entity_pinning BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('entity', new.entity_id);
END;
CREATE TRIGGER graph_pinning_changed AFTER UPDATE ON entity_pinning BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('entity', new.entity_id);
END;
CREATE TRIGGER graph_pinning_removed AFTER DELETE ON entity_pinning BEGIN
    INSERT INTO graph_changes (kind, id) VALUES ('entity', old.entity_id);
END;
