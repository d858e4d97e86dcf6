-- Whether a prompt came with the answer before it, whose words are searched for too, so that it can be run again alike.
-- NULL: it is not known. Source: docs/guides/hooks.md "Why, and why not".
ALTER TABLE searches ADD COLUMN answered INTEGER CHECK (answered IN (0, 1));
