"""Secrets in a text: which forms they have, where they stand, and what replaces them. No entropy is measured."""
