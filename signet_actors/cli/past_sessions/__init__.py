"""Readers of the sessions that programs kept on this machine, and of the exports of chat services.

Source: docs/guides/backfill.md.
"""
