"""Queries other than recall, one file per subject; the statements are in ``store/reads/``, under the read policy."""
