-- Which memories a model had before it when it gave the reason for a proposal. The reason may quote them, so it goes
-- with the first of them that is erased, and is not shown while one of them is forgotten.
-- Source: reliability.md R23; decisions.md 19, 35.

CREATE TABLE shown_memories (
    proposal_seq INTEGER NOT NULL REFERENCES memory_proposals (seq) ON DELETE CASCADE,
    memory_seq   INTEGER NOT NULL,
    PRIMARY KEY (proposal_seq, memory_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX idx_shown_memories_memory ON shown_memories (memory_seq);

-- Of reasons given before nobody knows what they quote.
UPDATE memory_proposals SET rationale = NULL;
UPDATE memory_history SET metadata = json_remove(metadata, '$.decisionReason')
 WHERE job_id IS NOT NULL AND json_extract(metadata, '$.decisionReason') IS NOT NULL;
