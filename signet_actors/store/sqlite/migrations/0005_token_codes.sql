-- What the encoder says of each token of a text, beside the vector of the whole; recall compares them one by one.
-- NULL: never computed, or the model makes none. Source: docs/quality.md "Token similarity".

ALTER TABLE embeddings ADD COLUMN token_codes BLOB;
