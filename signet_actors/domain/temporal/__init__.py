"""Times that a query names: date phrases, the window that they mean, and the words that remain.

Pure: the moment of the request and its time zone are arguments.
"""
