-- What the upkeep of the knowledge graph must find and must not do twice.
-- Source: memory-pipeline.txt "Structural Classification", "Aspect Feedback".

-- confirmed_at: when a search of the session for the memory was counted for the aspect that the memory belongs to.
ALTER TABLE session_memories ADD COLUMN confirmed_at TEXT;

-- An entity has one job that classifies its facts.
CREATE INDEX idx_memory_jobs_entity ON memory_jobs (payload ->> 'entity')
 WHERE job_type = 'structural_classify' AND status IN ('pending', 'leased');
