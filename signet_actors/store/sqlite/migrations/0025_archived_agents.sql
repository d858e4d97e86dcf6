-- Agents that were removed from agents.roster: nothing of an archived agent is readable until it is in the roster again.
-- Source: architecture.txt "Multi-Agent Support" (visibility "archived").

-- in_roster: 1 if the agent was in the roster when it was read last; others were registered when they first stored.
ALTER TABLE agents ADD COLUMN in_roster INTEGER NOT NULL DEFAULT 0 CHECK (in_roster IN (0, 1));
ALTER TABLE agents ADD COLUMN archived_at TEXT;
CREATE INDEX idx_agents_archived ON agents (id) WHERE archived_at IS NOT NULL;
