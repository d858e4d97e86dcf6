"""A section of a note that has many facts, of which one is asked for."""

from __future__ import annotations

from typing import Final

FACTS: Final = {
    "which port has the kiosk?": "The kiosk answers on port 5173",
    "who signs the invoices": "Invoices are signed by Mara",
    "how long are backups kept": "Backups: 30 days, then deleted",
    "retention of logs": "Logs have a retention of 7 days",
    "where is the grafana dashboard?": "Grafana: dashboard slots-main",
    "what encoding has the carrier file": "The carrier file has encoding latin-1",
    "wie heißt die Testdatenbank": "Die Testdatenbank heißt slots_test",
    "what is the release day": "Release day is Thursday",
    "deploying": "Deploys need two approvals",
    "wer hat Bereitschaft": "Bereitschaft: Aylin, dann Priya",
}
"""Facts of one section, each with a question that it answers."""
SECTION: Final = "\n".join(["## Facts", *(f"- {fact}, as agreed in spring." for fact in FACTS.values())])
