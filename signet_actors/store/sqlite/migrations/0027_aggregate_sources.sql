-- The memories that the answer of an aggregate recall was made from: it is forgotten with any of them.
-- Source: memory-api.txt "POST /api/memory/recall"; docs/guides/aggregate-recall.md.

-- content_hash: that of the source when the answer was made. cited: 1 if the answer names it as its source.
CREATE TABLE aggregate_sources (
    memory_id    TEXT NOT NULL,
    source_id    TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    cited        INTEGER NOT NULL CHECK (cited IN (0, 1)),
    PRIMARY KEY (memory_id, source_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_aggregate_sources_source ON aggregate_sources (source_id);
