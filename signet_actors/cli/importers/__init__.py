"""Readers of other formats: each turns a file or a directory into lines of an import (``MemoryLine``).

Source: docs/transfer.md "Other formats".
"""
