"""A made-up session of 60 turns about the label service of a parcel shop, and prompts that have nothing to do with it.

``STORED`` says after which exchange the agent stores which memory; the prompt of the next exchange needs it.
"""

from __future__ import annotations

from typing import Final

EXCHANGES: Final[tuple[tuple[str, str], ...]] = (
    ("Have a look at the label service, please. Where does it begin?", "It begins in labels/main.py with a loop."),
    ("What does the loop do?", "It takes an order from the queue, renders a label and sends it to the printer."),
    ("Which printer is it?", "A thermal printer of the packing hall. I have noted how it is reached."),
    ("Which port does the label printer listen on? I must open it.", "On port 9105, in the firewall of the hall."),
    ("Good. Why are labels blurred since Monday?", "The rendering uses 300 dots per inch, the printer only 203."),
    ("Then render them for the printer.", "Done: the resolution is a setting now, and 203 is the default."),
    ("Add a test for that.", "I added a test that compares a rendered label with a stored picture."),
    ("It fails on my machine.", "Your fonts differ. I ship the font with the tests now, so they do not depend on it."),
    ("Now it passes. Commit that.", "Committed as one change, with the reason in the message."),
    ("Next: customs forms. Who needs them?", "Parcels to countries outside the union need them, in three copies."),
    ("Can the same renderer draw them?", "Nearly: it knows one page only. I would add a list of pages."),
    ("Do that, but keep labels as they are.", "A label is now a document with one page, and its bytes are unchanged."),
    ("What about weights in pounds?", "The form wants kilograms. I convert pounds at the edge, nowhere else."),
    ("Do we round?", "Up, to ten grams, because the carrier refuses a parcel that is heavier than declared."),
    ("Write that down for later sessions.", "Stored: weights are rounded up to ten grams."),
    ("How do we round parcel weights, and why upwards?", "Up to ten grams; the carrier refuses understated ones."),
    ("The form is still empty in Firefox.", "The preview used a feature that Firefox lacks. I replaced it."),
    ("What did that cost?", "Twelve lines, and the preview loads a little later."),
    ("Fine. Are there orders without a country?", "Forty two of last year, all from the old import."),
    ("What happens with them?", "The form refuses them, and the order stays in the queue with a reason."),
    ("Who sees that reason?", "The packing hall, on the board beside the scale."),
    ("Make it visible for support, too.", "It is in the order's history now, which support reads."),
    ("Which carrier takes the islands?", "The ferry line takes them, on Tuesdays and Fridays. I have stored that."),
    ("On which days do parcels for the islands leave?", "On Tuesdays and Fridays, with the ferry line."),
    ("Then hold them back until the evening before.", "They are printed on Monday and Thursday evening now."),
    ("Show me the change.", "It is one function, held_until, and a table of departures."),
    ("What if the ferry is cancelled?", "Then the label is void after two days, and a new one is printed."),
    ("Test that.", "I added a test with a clock that stands still, and one for the change to summer time."),
    ("Does everything pass?", "Yes, all of it, in nine seconds."),
    ("Then we are done for today. Thank you.", "You are welcome. What is open is in the notes of the change."),
)
"""Prompt and answer: 30 of each."""
COMPACTED_AFTER: Final = 18
"""Exchanges; the harness compacts the context then."""
SUMMARY: Final = (
    "The label service renders for the resolution of the thermal printer. Customs forms have several pages. Weights"
    " are converted at the edge."
)
STORED: Final = {
    3: ("hook", "The label printer of the packing hall listens on port 9105. It is reached over raw TCP."),
    15: ("http", "Parcel weights are rounded up to ten grams. The carrier refuses understated parcels."),
    23: ("mcp", "Parcels for the islands leave on Tuesdays and Fridays. The ferry line carries them."),
}
"""Number of the exchange: by which way, and what."""
RULE: Final = "critical: never print customer names on the outside of a parcel"
UNRELATED: Final = (
    "write a haiku about autumn leaves",
    "what is the capital of Mongolia?",
    "convert 30 degrees celsius to fahrenheit",
    "explain how photosynthesis works",
    "suggest a name for my cat",
    "translate good morning into Portuguese",
    "who painted the Mona Lisa?",
    "tell me about the history of chess",
    "recommend a novel by a Japanese author",
    "how far away is the moon?",
    "write a regular expression for IPv6 addresses",
    "explain the difference between a mutex and a semaphore",
    "reverse a linked list in Rust",
    "how do I undo the last git commit?",
    "why does this React component render twice?",
    "set up two factor authentication for my GitHub account",
    "explain how a bloom filter works",
    "sort this array of objects by two keys in JavaScript",
    "what does the borrow checker complain about here?",
    "center a div with CSS grid",
)
FOREIGN: Final = 1000
_OTHER_SUBJECTS: Final = (
    (
        "The label printer of hall h{0} listens on port 20{0}",
        "On which port does the printer of hall h{0} listen?",
    ),
    ("Parcels of carrier c{0} are rounded up to {0} grams", "How are weights of parcels of carrier c{0} rounded?"),
    ("Customs forms for country k{0} need {0} copies", "How many copies do customs forms for country k{0} need?"),
    ("The ferry f{0} to the islands leaves at pier {0}", "At which pier does the ferry f{0} to the islands leave?"),
)


def foreign_memory(number: int) -> str:
    """Return a memory of another project, about the same things."""
    return _OTHER_SUBJECTS[number % len(_OTHER_SUBJECTS)][0].format(number)


def foreign_question(number: int) -> str:
    """Return a prompt that this memory answers."""
    return _OTHER_SUBJECTS[number % len(_OTHER_SUBJECTS)][1].format(number)
