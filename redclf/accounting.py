"""What the steps of a run cost: once when they are made, and again in every later request.

Each message of the assistant is one request to its model: all messages before it go in, it comes out. So
a call is paid as output, its result as new input, and both as input again with every later request.
Tokens come from the usage that the trace has recorded, and else from an estimate; an `Account` says
which. A provider's prompt cache changes the price of what is read again, not its tokens.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from redclf.errors import RedclfError
from redclf.tokens import arguments_text, estimate_tokens
from redclf.trajectory import Interaction, Message, Trajectory

#: Where an account's tokens come from.
RECORDED, ESTIMATED, COUNTED = "recorded", "estimated", "counted"
_MILLION = 1_000_000
_PROMPT, _COMPLETION = "prompt_tokens", "completion_tokens"


@dataclass(frozen=True)
class Price:
    """Dollars for a million tokens.

    Parameters
    ----------
    input : float
        Of input that is read for the first time.
    cached : float
        Of input that the provider's prompt cache holds.
    output : float
    """

    input: float
    cached: float
    output: float


@dataclass(frozen=True)
class Prices:
    """A price table.

    Parameters
    ----------
    date : str
        When the prices were looked up.
    source : str
    models : mapping
        Name to price.
    """

    date: str
    source: str
    models: Mapping[str, Price]

    def of(self, model: str | None) -> Price | None:
        """Return a model's price: of its name, or of the longest name that its own begins with; None if unknown."""
        if not model:
            return None
        name = model.rsplit("/", 1)[-1].lower()
        known = [other for other in self.models if name == other or name.startswith(f"{other}-")]
        return self.models[max(known, key=len)] if known else None


def load_prices(path: Path | None = None) -> Prices:
    """Read a price table: JSON with `date`, `source` and `models`, each with `input`, `cached` and `output`.

    Parameters
    ----------
    path : Path, optional
        The shipped table by default.

    Raises
    ------
    RedclfError
        If it can't be read, or a price is no number from 0.
    """
    where = "the shipped prices" if path is None else str(path)
    try:
        text = (files("redclf") / "data" / "prices.json" if path is None else path).read_text(encoding="utf-8")
        value = json.loads(text)
        models = {str(name).lower(): _price(price, where, name) for name, price in value["models"].items()}
        return Prices(str(value["date"]), str(value["source"]), models)
    except OSError as error:
        raise RedclfError(f"{where}: expected a price table, got: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise RedclfError(f"{where}: expected JSON with date, source and models") from None


def _price(value: Any, where: str, model: object) -> Price:
    rates = [value.get(name) if isinstance(value, dict) else None for name in ("input", "cached", "output")]
    if not all(isinstance(rate, int | float) and not isinstance(rate, bool) and rate >= 0 for rate in rates):
        raise RedclfError(f"{where}: {model}: expected input, cached and output, dollars for a million tokens")
    return Price(*map(float, rates))  # type: ignore[arg-type]


@dataclass(frozen=True)
class StepCost:
    """Tokens of one step.

    Parameters
    ----------
    made : int
        Of the call, as output.
    read : int
        Of the result, when it is first sent.
    again : int
        Of both, over all later requests.
    """

    made: int
    read: int
    again: int

    @property
    def total(self) -> int:
        """All tokens that the step costs."""
        return self.made + self.read + self.again


@dataclass(frozen=True)
class Account:
    """What a run costs.

    Parameters
    ----------
    source : str
        `RECORDED`, `ESTIMATED` or `COUNTED`.
    model : str or None
        Whose prices apply, where the trace says so.
    requests : int
    input : int
        Accumulated input tokens over all requests.
    fresh : int
        Of these, the ones that no request before has sent: what a prompt cache leaves to pay in full.
    output : int
    steps : mapping
        Step to its cost, all interactions of the assistant.
    """

    source: str
    model: str | None
    requests: int
    input: int
    fresh: int
    output: int
    steps: Mapping[tuple[int, int], StepCost]

    def dollars(self, price: Price | None, cache: bool = True) -> float | None:
        """Return what the run costs, with or without a prompt cache; None where the price is unknown."""
        if price is None:
            return None
        again = self.input - self.fresh
        rate = price.cached if cache else price.input
        return (self.fresh * price.input + again * rate + self.output * price.output) / _MILLION

    def step_dollars(self, step: tuple[int, int], price: Price | None, cache: bool = True) -> float | None:
        """Return what one step costs, with or without a prompt cache; None where the price is unknown."""
        if price is None:
            return None
        cost = self.steps[step]
        rate = price.cached if cache else price.input
        return (cost.made * price.output + cost.read * price.input + cost.again * rate) / _MILLION


def sent_text(message: Message) -> str:
    """Return what of a message is sent to the assistant's model: its text, and the names and arguments of its calls.

    What a simulated user does with its own tools stays with the user.
    """
    if message.role == "tool":
        return message.content if message.requestor == "assistant" else ""
    if message.role != "assistant" or not message.tool_calls:
        return message.content
    return "\n".join(
        [message.content, *(f"{call.name}{arguments_text(call.arguments)}" for call in message.tool_calls)]
    )


def account(trajectory: Trajectory, count: Callable[[str], int] | None = None, recorded: bool = True) -> Account:
    """Return what a run and its steps cost.

    Parameters
    ----------
    trajectory : Trajectory
    count : callable, optional
        Counts the tokens of a text; an estimate by default (`redclf.tokens.estimate_tokens`).
    recorded : bool
        Whether usage that the trace has recorded is used, where every request has it. Input and output are then
        the recorded ones, and steps are scaled by how much faster the recorded input grows than the counted one.
    """
    tokens = estimate_tokens if count is None else count
    messages = trajectory.messages
    requests = [index for index, message in enumerate(messages) if message.role == "assistant"]
    sizes = [tokens(sent_text(message)) for message in messages]
    system = 0 if any(message.role == "system" for message in messages) else tokens(trajectory.policy)
    before = list(accumulate(sizes, initial=system))
    given = [before[index] for index in requests]
    made = [sizes[index] for index in requests]
    scale = 1.0
    usage = [_usage(messages[index]) for index in requests] if recorded else []
    known = [found for found in usage if found is not None]
    is_recorded = bool(known) and len(known) == len(requests)
    if is_recorded:
        grown = given[-1] - given[0]
        given, made = [found[0] for found in known], [found[1] for found in known]
        if grown > 0 and given[-1] > given[0]:
            scale = (given[-1] - given[0]) / grown

    def cost(item: Interaction) -> StepCost:
        call = round(scale * tokens(f"{item.call.name}{arguments_text(item.call.arguments)}"))
        result = round(scale * sizes[item.result_index])
        with_call = len(requests) - bisect_right(requests, item.call_index)
        with_result = len(requests) - bisect_right(requests, item.result_index)
        read = result if with_result else 0
        return StepCost(call, read, call * with_call + result * max(with_result - 1, 0))

    return Account(
        source=RECORDED if is_recorded else ESTIMATED if count is None else COUNTED,
        model=_model(trajectory),
        requests=len(requests),
        input=sum(given),
        fresh=given[0] + sum(max(b - a, 0) for a, b in pairwise(given)) if given else 0,
        output=sum(made),
        steps={item.step: cost(item) for item in trajectory.assistant_interactions},
    )


def _usage(message: Message) -> tuple[int, int] | None:
    usage = message.usage or {}
    given, made = usage.get(_PROMPT), usage.get(_COMPLETION)
    return None if given is None or made is None else (given, made)


def _model(trajectory: Trajectory) -> str | None:
    model = trajectory.extra.get("model")
    return model if isinstance(model, str) and model else None


def tokenizer_count(path: Path) -> Callable[[str], int]:
    """Return what counts tokens with a `tokenizer.json`.

    Raises
    ------
    RedclfError
        If it can't be loaded.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises a bare Exception
        raise RedclfError(f"{path}: expected a tokenizer.json, got: {error}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count(text: str) -> int:
        valid = text.encode("utf-8", "replace").decode("utf-8")
        return len(tokenizer.encode(valid, add_special_tokens=False).ids)

    return count
