"""How candidates of several legs become one ranked list."""
