"""The four categories of redundant steps, and their definitions.

Source: RedundancyBench (arXiv 2605.29893), section 2.2 and its annotation guideline.
"""

from __future__ import annotations

from typing import Final

INCORRECT: Final = "Incorrect Step"
ABNORMAL: Final = "Abnormal Step"
DUPLICATED: Final = "Duplicated Step"
EXPLORATORY: Final = "Exploratory Step"

#: The categories in their order of precedence: where several fit, the first one counts.
CATEGORIES: Final[tuple[str, ...]] = (INCORRECT, ABNORMAL, DUPLICATED, EXPLORATORY)

DEFINITIONS: Final[dict[str, str]] = {
    INCORRECT: (
        "Unjustified when it was made, judged only by what was known then: a wrong target, wrong "
        "arguments or timing, against the policy, an unknown tool, or searching on after the target "
        "was found. Evidence: the earlier step or user message that settles it, or [-1]."
    ),
    ABNORMAL: (
        "A transient outside failure (network, timeout, service) that a later successful retry of "
        "the same call replaced. Evidence: that retry."
    ),
    DUPLICATED: (
        "Earlier valid information already covers it, perhaps from another tool or from several "
        "earlier steps together, and nothing changed in between. Evidence: the earliest step that "
        "covers it."
    ),
    EXPLORATORY: (
        "A reasonable search or diagnosis that only ruled something out and supported nothing "
        "later. Evidence: normally the later step that hit the target, the fault or the way back."
    ),
}


def parse_category(text: object) -> str | None:
    """Return the category that `text` names, or None.

    Case and a missing " Step" are forgiven ("duplicated" gives "Duplicated Step").
    """
    if not isinstance(text, str):
        return None
    word = text.strip().lower().removesuffix("step").strip()
    for category in CATEGORIES:
        if category.lower().removesuffix("step").strip() == word:
            return category
    return None
