"""What is done again and again: one duty per file.

A duty says when it is wanted next (``due_ns``, monotonic) and does one short, bounded piece of it per ``step``, so
that the actor's loop reads its mailbox, beats and drains between any two pieces.
"""
