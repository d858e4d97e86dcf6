"""The periodic duties, one per file.

A duty states when it is due next (``due_ns``, monotonic) and does one short, bounded piece of work per ``step``, so
that the actor's loop can read its mailbox, send heartbeats and drain between any two steps.
"""
