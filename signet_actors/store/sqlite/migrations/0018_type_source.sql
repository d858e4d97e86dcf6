-- Whether a rule or constraint may be one of every session: named (by a person, a client, an import, a model), or an order
-- in form whose type was inferred. NULL for all other types, and for a rule that was inferred from a word alone.
-- signet_type_source: a function that the upgrade provides (schema.py).
-- Source: docs/compatibility.md "Type inference".

ALTER TABLE memories ADD COLUMN type_source TEXT CHECK (type_source IN ('named', 'order'));
UPDATE memories SET type_source = signet_type_source(type, source_type, content) WHERE type IN ('rule', 'constraint');
