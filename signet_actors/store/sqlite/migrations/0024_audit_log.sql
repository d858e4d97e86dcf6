-- What was changed, exported or denied, in the order in which it was recorded. Rows are added, and the oldest are deleted
-- by age; none is ever changed. The hash of a row covers that of the row before it.
-- Source: docs/operations.md "Audit log".

CREATE TABLE audit_log (
    seq        INTEGER PRIMARY KEY,
    created_at TEXT NOT NULL,
    kind       TEXT NOT NULL,
    actor      TEXT NOT NULL,
    outcome    TEXT NOT NULL,
    -- A JSON object without secrets and without texts of memories.
    detail     TEXT NOT NULL,
    -- Equal events within a minute are one row.
    count      INTEGER NOT NULL CHECK (count > 0),
    hash       TEXT NOT NULL
) STRICT;
