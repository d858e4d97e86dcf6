"""Combine the candidates of several legs into one ranked list."""
