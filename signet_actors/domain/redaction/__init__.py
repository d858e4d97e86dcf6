"""Find and replace secrets in a text by their format, context or name. Entropy is not used."""
