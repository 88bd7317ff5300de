"""Which altered copies of a trajectory a recipe trains on: injected steps, and runs that were cut."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from redclf.benchmark.data import LabelledTrajectory, Step
from train.augment import augment, cut

#: Interactions that an agent loop sees after a step before it judges that step.
AHEAD = 2
#: Copies are drawn from seeds this far apart for two seeds of a recipe.
_STRIDE = 1000


@dataclass(frozen=True)
class Augmentation:
    """The copies made of each trajectory.

    Parameters
    ----------
    copies : int
        Copies with injected steps.
    injections : int
        Steps that are tried a copy.
    rename : float
        Probability that a copy's tools are renamed.
    without : tuple of str
        Names of injections that are left out.
    cuts : int
        Copies cut after a random step, as an agent loop has them.
    """

    copies: int = 1
    injections: int = 3
    rename: float = 0.3
    without: tuple[str, ...] = ()
    cuts: int = 0


def injected_copies(
    item: LabelledTrajectory, plan: Augmentation, seed: int = 0
) -> list[tuple[LabelledTrajectory, Collection[Step]]]:
    """Return the copies with injected steps, and which steps those are."""
    found: list[tuple[LabelledTrajectory, Collection[Step]]] = []
    for number in range(_STRIDE * seed, _STRIDE * seed + plan.copies):
        made = augment(item, number, injections=plan.injections, rename=plan.rename, without=plan.without)
        if made is not None:
            found.append(made)
    return found


def cut_copies(item: LabelledTrajectory, plan: Augmentation, seed: int = 0) -> list[tuple[LabelledTrajectory, int]]:
    """Return the cut copies, and for each the ordinal of the first step that it is there for.

    A copy stands for its last steps alone, those that have at most `AHEAD` interactions after them.
    """
    count = len(item.trajectory.interactions)
    rng = random.Random(f"cut:{seed}:{item.trajectory.id}")
    places = range(min(AHEAD, count), count)
    found = []
    for after in sorted(rng.sample(places, min(plan.cuts, len(places)))):
        short = cut(item, after)
        name = f"{item.trajectory.id}#cut-{after}"
        found.append((replace(short, trajectory=replace(short.trajectory, id=name)), after - AHEAD))
    return found


def copies_of(items: Iterable[LabelledTrajectory], plan: Augmentation, seed: int = 0) -> list[LabelledTrajectory]:
    """Return all copies of some trajectories."""
    found = []
    for item in items:
        found += [copy for copy, _ in injected_copies(item, plan, seed)]
        found += [copy for copy, _ in cut_copies(item, plan, seed)]
    return found
