"""What an agent is given of a project's memories, notes and sessions: ``python -m bench.first_day``."""
