"""Taking redundant steps out of a trajectory, so that what is left is still a valid run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from redclf.detectors.base import Prediction
from redclf.relations.views import StepView, TrajectoryView
from redclf.trajectory import Message, Trajectory

Step = tuple[int, int]

#: Why a redundant step is not taken out.
EVIDENCE, WRITE, SOURCE = "evidence", "write", "source"


@dataclass(frozen=True)
class Choice:
    """Which of the predicted steps are taken out.

    Parameters
    ----------
    removed : tuple of Prediction
    kept : mapping
        Each other predicted step, and why it stays: it is `EVIDENCE` of one that goes, a `WRITE`, or the only
        `SOURCE` of an identifier that a later write names.
    """

    removed: tuple[Prediction, ...]
    kept: Mapping[Step, str]


@dataclass(frozen=True)
class Plan:
    """What becomes of the messages.

    Parameters
    ----------
    dropped : frozenset of int
        Indices of the messages that go.
    calls : mapping
        Message index to the places of the calls that go from a message which stays.
    notes : mapping
        Message index of a result to the line that takes its place.
    """

    dropped: frozenset[int]
    calls: Mapping[int, frozenset[int]]
    notes: Mapping[int, str]

    def new_indices(self, count: int) -> list[int | None]:
        """Return for each of `count` messages its index afterwards, None for one that goes."""
        found: list[int | None] = []
        left = 0
        for index in range(count):
            found.append(None if index in self.dropped else left)
            left += index not in self.dropped
        return found


def choose(trajectory: Trajectory, predictions: Sequence[Prediction], writes: bool = False) -> Choice:
    """Choose the steps to take out.

    What a removed step points to as its evidence stays, and so does the only source of what a later write names, and
    a step that changed something, unless `writes` says otherwise. The most confident predictions are taken first.

    Parameters
    ----------
    trajectory : Trajectory
    predictions : sequence of Prediction
    writes : bool
        Whether steps that changed something may go, too.
    """
    view = TrajectoryView(trajectory)
    steps = {(step.call_index, step.result_index): step for step in view.steps}
    written = _written(view)
    removed: list[Prediction] = []
    kept: dict[Step, str] = {}
    needed: set[Step] = set()
    gone: set[Step] = set()
    for prediction in sorted(predictions, key=lambda prediction: -prediction.confidence):
        evidence = set(zip(prediction.evidence[::2], prediction.evidence[1::2], strict=False))
        step = steps[prediction.step]
        if step.write and not writes:
            kept[prediction.step] = WRITE
        elif prediction.step in needed or evidence & gone:
            # Of two steps that point to each other one stays: the information must be somewhere.
            kept[prediction.step] = EVIDENCE
        elif _is_only_source(view, step, written, gone):
            kept[prediction.step] = SOURCE
        else:
            removed.append(prediction)
            gone.add(prediction.step)
            needed |= evidence
    return Choice(tuple(removed), kept)


def _written(view: TrajectoryView) -> dict[str, int]:
    """Return the identifiers that writes name, and the message of the first write that does."""
    found: dict[str, int] = {}
    for step in view.steps:
        if step.write:
            for atom in step.arg_ids:
                found.setdefault(atom, step.call_index)
    return found


def _is_only_source(view: TrajectoryView, step: StepView, written: Mapping[str, int], gone: Collection[Step]) -> bool:
    """Return whether a write names what, of all that came before it and stays, this step's result alone has shown."""
    for atom in step.atoms & written.keys():
        first = written[atom]
        if step.result_index >= first or atom in view.policy_atoms:
            continue
        texts = (view.in_text.get(atom, ()), view.in_user.get(atom, ()))
        if any(places and places[0] < first for places in texts):
            continue
        others = (view.steps[place] for place in view.in_results.get(atom, ()) if place != step.ordinal)
        if not any(o.result_index < first and (o.call_index, o.result_index) not in gone for o in others):
            return True
    return False


def plan_removal(trajectory: Trajectory, steps: Iterable[Sequence[int]]) -> Plan:
    """Return what must happen to the messages for some steps to go.

    A call goes with its result. A message that had only such calls goes too, unless it has text, which stays.

    Raises
    ------
    ValueError
        If there is no such step.
    """
    calls: dict[int, set[int]] = {}
    dropped: set[int] = set()
    for step in steps:
        item = trajectory.interaction_at(step)
        message = trajectory.messages[item.call_index]
        place = next(at for at, call in enumerate(message.tool_calls) if call is item.call)
        calls.setdefault(item.call_index, set()).add(place)
        dropped.add(item.result_index)
    for index, places in list(calls.items()):
        message = trajectory.messages[index]
        if len(places) == len(message.tool_calls) and not message.content.strip():
            dropped.add(index)
            del calls[index]
    return Plan(frozenset(dropped), {index: frozenset(places) for index, places in calls.items()}, {})


def plan_placeholders(trajectory: Trajectory, predictions: Iterable[Prediction]) -> Plan:
    """Return a plan that keeps all messages, and puts one line in place of each result that goes."""
    notes = {}
    for prediction in predictions:
        trajectory.interaction_at(prediction.step)
        notes[prediction.step[1]] = placeholder(prediction.category, prediction.evidence)
    return Plan(frozenset(), {}, notes)


def placeholder(category: str, evidence: Sequence[int]) -> str:
    """Return the line that stands for a result, and points to what covers it."""
    name = category.removesuffix(" Step").lower()
    if tuple(evidence) == (-1,):
        return f"[redundant step ({name}), result removed: see the policy]"
    if len(evidence) == 1:
        return f"[redundant step ({name}), result removed: see message {evidence[0]}]"
    pairs = zip(evidence[::2], evidence[1::2], strict=False)
    where = " and ".join(f"messages {call} and {result}" for call, result in pairs)
    return f"[redundant step ({name}), result removed: see {where}]"


def apply_plan(trajectory: Trajectory, plan: Plan) -> Trajectory:
    """Return the trajectory with a plan carried out."""
    messages: list[Message] = []
    for index, message in enumerate(trajectory.messages):
        if index in plan.dropped:
            continue
        places: Collection[int] = plan.calls.get(index, ())
        if places:
            left = tuple(call for place, call in enumerate(message.tool_calls) if place not in places)
            message = replace(message, tool_calls=left)
        if index in plan.notes:
            message = replace(message, content=plan.notes[index])
        messages.append(message)
    return replace(trajectory, messages=tuple(messages))


def prune(
    trajectory: Trajectory, predictions: Sequence[Prediction], writes: bool = False, keep_place: bool = False
) -> tuple[Trajectory, list[int | None]]:
    """Return a trajectory without its redundant steps.

    Parameters
    ----------
    trajectory : Trajectory
    predictions : sequence of Prediction
        As a detector gives them.
    writes : bool
        Whether steps that changed something may go, too.
    keep_place : bool
        Whether a line that points to the evidence stays in place of a result; then all messages stay.

    Returns
    -------
    pruned : Trajectory
    indices : list of int or None
        For each message its index afterwards, None for one that is gone.

    Examples
    --------
    >>> from redclf import Detector, load
    >>> from redclf.pruning import prune
    >>> run = load("run.json")[0]  # doctest: +SKIP
    >>> shorter, indices = prune(run, Detector().detect(run))  # doctest: +SKIP
    """
    removed = choose(trajectory, predictions, writes).removed
    if keep_place:
        plan = plan_placeholders(trajectory, removed)
    else:
        plan = plan_removal(trajectory, [prediction.step for prediction in removed])
    return apply_plan(trajectory, plan), plan.new_indices(len(trajectory.messages))
