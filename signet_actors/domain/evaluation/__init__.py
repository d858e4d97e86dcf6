"""How good a recall is: question sets, and measures with their confidence intervals.

Source: docs/quality.md "How it is measured".
"""
