"""Augmentation: copies of labelled trajectories with injected steps, in other tools' and agents' manners."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace

from redclf.benchmark.data import LabelledTrajectory
from redclf.trajectory import Trajectory
from train.disguise import AFTER, BEFORE, without_policy
from train.injections import INJECTIONS, Injector

Step = tuple[int, int]

#: What can be left out: kinds of injection, and disguises of whole copies.
INJECTION_NAMES: tuple[str, ...] = (*INJECTIONS, *BEFORE, *AFTER)

#: The same by what they teach, which is how an ablation leaves them out.
FAMILIES: dict[str, tuple[str, ...]] = {
    "repeats": ("repeat", "repeat_parallel", "other_query", "view_again", "joint"),
    "other-tool": ("other_tool",),
    "failures": ("failure", "failure_earlier"),
    "mistakes": (
        *("refused", "guessed", "bad_form", "refused_again", "unknown_tool"),
        *("wrong_target", "refused_edit", "wrong_path"),
    ),
    "searches": ("search_on", "empty_search", "off_target", "off_search", "ruled_out", "research", "no_hits"),
    "negatives": ("lone_failure", "changed_repeat", "poll", "next_page", "parallel_objects", "chain"),
    "disguises": (*BEFORE, *AFTER),
}


def augment(
    item: LabelledTrajectory,
    seed: int,
    injections: int = 3,
    rename: float = 0.3,
    without: Collection[str] = (),
) -> tuple[LabelledTrajectory, dict[Step, str]] | None:
    """Return a copy of a trajectory with injected steps, and the kind of each of those.

    Parameters
    ----------
    item : LabelledTrajectory
    seed : int
        The same seed and trajectory give the same copy.
    injections : int
        How many injections to make; where a kind does not fit the trajectory another one is drawn.
    rename : float
        Probability that the copy is disguised: its tools and values renamed, its results in
        another format, its calls in parallel.
    without : collection of str
        Kinds of injection and disguises to leave out (for ablations).

    Returns
    -------
    tuple or None
        None where nothing could be injected.

    Raises
    ------
    ValueError
        If `without` holds a name that is neither.
    """
    unknown = set(without) - set(INJECTION_NAMES)
    if unknown:
        raise ValueError(f"without: expected some of {', '.join(INJECTION_NAMES)}, got {', '.join(sorted(unknown))}")
    rng = random.Random(f"{seed}:{item.trajectory.id}")
    disguised = rng.random() < rename
    if disguised:
        for name, (change, share) in BEFORE.items():
            if rng.random() < share and name not in without:
                item = change(item, rng)
    injector = Injector(item, rng)
    kinds = {name: weight for name, (_, weight) in INJECTIONS.items() if name not in without}
    done = 0
    for _ in range(4 * injections):
        if done < injections and kinds:
            done += injector.apply(rng.choices(list(kinds), list(kinds.values()))[0])
    if not done:
        return None
    made, inserted = injector.draft.finish(item, f"augmented-{seed}")
    messages = made.trajectory.messages
    if any(len(messages[call].tool_calls) > 1 for call, _ in inserted):
        # Under a rule of one call at a time a parallel step would be Incorrect for that alone.
        kept = {step.step for step in made.gold if step.step in inserted}
        stripped = without_policy(made, rng)
        gold = tuple(step for step in made.gold if step in stripped.gold or step.step in kept)
        made = replace(stripped, gold=gold, disputed=stripped.disputed - kept)
    if disguised:
        for name, (change, share) in AFTER.items():
            if rng.random() < share and name not in without:
                made = change(made, rng)
    return made, inserted


def cut(item: LabelledTrajectory, after: int) -> LabelledTrajectory:
    """Return the trajectory as an agent loop has it, cut after interaction `after`.

    A loop goes on when all results of a message are there, so parallel calls stay together.
    A gold step stays gold where its evidence is cut off: the annotators call it redundant, whether or not
    a loop can see why by then. Such evidence is no candidate in the cut trajectory, so nothing learns it.
    """
    interactions = item.trajectory.interactions
    last = interactions[min(after, len(interactions) - 1)].call_index
    end = 1 + max(step.result_index for step in interactions if step.call_index <= last)
    trajectory: Trajectory = replace(item.trajectory, messages=item.trajectory.messages[:end])
    gold = tuple(step for step in item.gold if step.step[1] < end)
    disputed = frozenset(step for step in item.disputed if step[1] < end)
    return replace(item, trajectory=trajectory, gold=gold, disputed=disputed)
