-- What the daemon has done, in figures that survive a restart; errors of the documented codes; local telemetry.
-- No row has a text of a memory, of a request or of a model.
-- Source: architecture.txt "Analytics"; docs/compatibility.md "Analytics and telemetry".

-- The sums of all processes up to now, as JSON.
CREATE TABLE analytics_totals (
    name       TEXT PRIMARY KEY,
    figures    TEXT NOT NULL CHECK (json_valid(figures)),
    updated_at TEXT NOT NULL
) STRICT;

-- What happened in one minute, kept for a day.
CREATE TABLE analytics_minutes (
    minute  TEXT PRIMARY KEY,
    figures TEXT NOT NULL CHECK (json_valid(figures))
) STRICT;

-- The newest 500 are kept.
CREATE TABLE error_events (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    created_at TEXT NOT NULL,
    stage      TEXT NOT NULL,
    code       TEXT NOT NULL,
    message    TEXT NOT NULL,
    memory_id  TEXT,
    actor      TEXT
) STRICT;

CREATE INDEX idx_error_events_memory ON error_events (memory_id) WHERE memory_id IS NOT NULL;

CREATE TABLE telemetry_events (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    created_at TEXT NOT NULL,
    event      TEXT NOT NULL,
    properties TEXT NOT NULL CHECK (json_valid(properties))
) STRICT;
CREATE INDEX idx_telemetry_events_created_at ON telemetry_events (created_at);

ALTER TABLE provider_usage ADD COLUMN failures INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0);
ALTER TABLE provider_usage ADD COLUMN took_ms INTEGER NOT NULL DEFAULT 0 CHECK (took_ms >= 0);
