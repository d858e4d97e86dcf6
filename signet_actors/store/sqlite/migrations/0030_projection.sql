-- Where the memories that an agent may read lie on a map of their vectors.
-- Source: architecture.txt "Database Schema" (umap_cache), "UMAP Projection".

-- embedding_count, newest_embedding: how many memories with a vector the agent could read, and the highest embeddings.seq
-- of these. result_json: rows, coordinates and edges, without any text.
CREATE TABLE umap_cache (
    id               TEXT PRIMARY KEY,
    agent_id         TEXT NOT NULL,
    dimensions       INTEGER NOT NULL CHECK (dimensions IN (2, 3)),
    embedding_count  INTEGER NOT NULL,
    newest_embedding INTEGER NOT NULL,
    result_json      TEXT NOT NULL CHECK (json_valid(result_json)),
    cached_at        TEXT NOT NULL,
    UNIQUE (agent_id, dimensions)
) STRICT, WITHOUT ROWID;
