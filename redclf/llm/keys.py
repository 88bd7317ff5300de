"""Keys come from the environment, and their text goes nowhere but to the endpoint."""

from __future__ import annotations

import os
from typing import Any

from redclf.errors import RedclfError

#: Stands in a text where a key stood.
MASK = "[key]"
#: A shorter text is no key but a placeholder, and masking it would spoil replies.
_SHORTEST = 4
#: What an endpoint gets that needs no key, such as a server on this machine.
_NO_KEY = "none"


class Secret:
    """One key.

    Parameters
    ----------
    variable : str
        The environment variable that holds it.
    required : bool
        Whether it must be set; otherwise an endpoint gets a placeholder without it.

    Raises
    ------
    RedclfError
        If it is required and not set.
    """

    def __init__(self, variable: str, required: bool = False) -> None:
        self.variable = variable
        self._value = os.environ.get(variable, "").strip()
        if required and not self._value:
            raise RedclfError(f"expected a key in the environment variable {variable}, found none")

    def __repr__(self) -> str:
        return f"Secret({self.variable!r})"

    def reveal(self) -> str:
        """Return the key, for the endpoint alone."""
        return self._value or _NO_KEY

    def redact(self, value: Any) -> Any:
        """Return a JSON value or a text with the key's text masked wherever it occurs."""
        if len(self._value) < _SHORTEST:
            return value
        if isinstance(value, str):
            return value.replace(self._value, MASK)
        if isinstance(value, dict):
            return {self.redact(key): self.redact(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.redact(item) for item in value]
        return value
