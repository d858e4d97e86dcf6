"""The sessions of harnesses: who has claimed which, and what each has received.

A hook enters its session by ``SessionTable.enter``; the end of a session is ``SessionTable.end``, which releases the
claim unless another path has it.
"""
