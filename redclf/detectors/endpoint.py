"""What detectors behind an API have in common: a sender, and the count of what was asked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from redclf.benchmark.data import GoldStep, LabelledTrajectory
from redclf.detectors.base import Detector
from redclf.llm.config import ConfigError, EndpointConfig
from redclf.llm.prices import Price, load_prices
from redclf.llm.runner import Request
from redclf.llm.sender import Sender
from redclf.llm.usage import Usage, total

#: Where request logs are kept if nothing else is said.
REQUESTS = Path("runs") / "requests"

#: Whether a question will be asked: the task, the trajectory, and the gold step (None in StepDet).
Wanted = Callable[[str, LabelledTrajectory, GoldStep | None], bool]

T = TypeVar("T")


class EndpointDetector(Detector):
    """Asks an endpoint.

    Parameters
    ----------
    config : EndpointConfig
    folder : Path
        Of the request logs.
    """

    def __init__(self, config: EndpointConfig, folder: Path) -> None:
        self.config = config
        self.name = config.label
        self.price = _price(config)
        self.sender = Sender.shared(config, folder)
        self._asked: dict[str, bool] = {}

    def prepare(
        self,
        items: Sequence[LabelledTrajectory],
        progress: Callable[[int], None] | None = None,
        wanted: Wanted | None = None,
    ) -> None:
        """Get all answers that an evaluation needs, several at a time.

        Parameters
        ----------
        items : sequence of LabelledTrajectory
        progress : callable, optional
            Called with the number of requests that are done.
        wanted : callable, optional
            Says which questions will be asked; all by default.
        """
        done = 0

        def step() -> None:
            nonlocal done
            done += 1
            if progress is not None:
                progress(done)

        for requests in self.rounds(items, wanted or _always):
            self.sender.ask(requests, step)

    def planned(self, items: Sequence[LabelledTrajectory], wanted: Wanted | None = None) -> Iterable[Request]:
        """Return the requests of an evaluation that are known before the first answer."""
        return next(self.rounds(items, wanted or _always))

    @abstractmethod
    def rounds(self, items: Sequence[LabelledTrajectory], wanted: Wanted) -> Iterator[Iterable[Request]]:
        """Yield the requests of an evaluation; a later round may depend on the answers to an earlier one."""

    @abstractmethod
    def prompt(self, request: Request) -> Any:
        """Return what a person would want to read of a request."""

    def usage(self) -> Usage:
        """Return what the answers took that were read since the last `reset`."""
        failed = sum(not usable for usable in self._asked.values())
        return total((self.sender.log.get(key) for key in self._asked), failed, self.price)

    def unanswered(self) -> list[str]:
        """Return why requests stayed without any answer."""
        return [self.sender.unanswered[key] for key in self._asked if key in self.sender.unanswered]

    def _reason(self, key: str) -> str:
        """Return why a request has no usable answer."""
        return self.sender.unanswered.get(key) or "the reply can't be used"

    def reset(self) -> None:
        """Count anew."""
        self._asked.clear()

    def _read(self, request: Request, read: Callable[[Any], T | None]) -> T | None:
        """Return what a reply says; None, and a failure counted, where it says nothing usable."""
        return self._note(request.key, self.sender.record(request), read)

    def _note(self, key: str, record: dict[str, Any] | None, read: Callable[[Any], T | None]) -> T | None:
        reply = None if record is None else record.get("reply")
        value = None if reply is None else read(reply)
        self._asked[key] = self._asked.get(key, True) and value is not None
        return value


def _always(task: str, item: LabelledTrajectory, gold: GoldStep | None) -> bool:
    return True


def _price(config: EndpointConfig) -> Price | None:
    path = config.price_file()
    if path is None:
        return None
    price = load_prices(path).models.get(config.model)
    if price is None:
        raise ConfigError(f"{path}: expected a price of {config.model}, found none")
    return price
