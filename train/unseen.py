"""Score a model folder on a root that it was not trained on: the detectors exactly as they ship.

    python -m train.unseen --model DIR --test ROOT [--domains a b] --name choosing --output results
    python -m train.unseen --config C --data ROOT --data ROOT2 --test ROOT3 --name all --output results

With `--config` and `--data` the folder is trained first, by `train.finetune`, at `--model` or
`<runs>/<recipe>-visible`; work of an earlier run is taken up. The scores go to
`<output>/unseen-<name>.*`: relations, text, both, by domain. Nothing of the test root is kept but
numbers.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from redclf.benchmark.data import LabelledTrajectory, load_benchmark
from redclf.benchmark.evaluate import Evaluation, check_out_of_sample, evaluate
from redclf.benchmark.tables import breakdown_table
from redclf.detectors.cross_encoder import CrossEncoderDetector
from redclf.detectors.distribution import TargetScores
from redclf.detectors.relations import RelationsDetector
from redclf.relations.features import Relations
from redclf.runtime.fusion import text_alone
from train import finetune
from train.command import clock_log, command_parser, guarded
from train.provenance import header
from train.recipe import load_recipe
from train.report import section, summary, write_report


class TextDetector(CrossEncoderDetector):
    """A model folder's text alone: for the middle row of an ablation.

    Parameters
    ----------
    model : str or Path
    """

    name = "text"

    def __init__(self, model: str | Path) -> None:
        super().__init__(model)
        self._own = self.folder.calibration("text")
        self.threshold = self._own.threshold

    def score(self, relations: Relations) -> list[TargetScores]:
        """Return the distribution of every target; what the encoder does not read has no evidence."""
        logits, cells = self._scorer.open(relations)
        read = self.reader(relations)
        found = []
        for place, logit in enumerate(logits):
            own = cells(place)
            if logit <= self._floor:
                found.append(TargetScores(self._plain.logit(logit), np.full_like(own, -np.log(own.size))))
                continue
            chosen, outputs = read(place, own)
            alone, text = text_alone(outputs, chosen, own.shape[1])
            found.append(TargetScores(self._own.logit(alone), text))
        return found


def detectors_of(model: Path, relations_only: bool) -> dict[str, RelationsDetector | CrossEncoderDetector]:
    """Return the rows' detectors over one model folder."""
    found: dict[str, RelationsDetector | CrossEncoderDetector] = {"relations": RelationsDetector(model)}
    if not relations_only:
        found |= {"text": TextDetector(model), "both": CrossEncoderDetector(model)}
    return found


def chosen_domains(items: Sequence[LabelledTrajectory], domains: Sequence[str] | None) -> list[LabelledTrajectory]:
    """Return the trajectories of some domains, of all by default.

    Raises
    ------
    ValueError
        If there are none of a domain.
    """
    known = sorted({item.domain for item in items})
    for domain in domains or ():
        if domain not in known:
            raise ValueError(f"--domains: expected some of {', '.join(known)}, got {domain!r}")
    return [item for item in items if not domains or item.domain in domains]


def prepare_model(options: argparse.Namespace) -> Path:
    """Return the model folder, trained where a recipe and data are given.

    Raises
    ------
    ValueError
        If neither a folder nor a recipe with data is given, or training fails.
    """
    if not options.config:
        if not options.model:
            raise ValueError("expected --model, or --config and --data to train one")
        return Path(options.model)
    if not options.data:
        raise ValueError("--config: expected --data, too")
    recipe = load_recipe(options.config, options.set)
    folder = Path(options.model or Path(options.runs) / f"{recipe.name}-visible")
    arguments = ["--config", options.config, "--output", str(folder)]
    for root in options.data:
        arguments += ["--data", root]
    for override in options.set:
        arguments += ["--set", override]
    if options.relations_only:
        arguments.append("--relations-only")
    if finetune.main(arguments):
        raise ValueError(f"{folder}: the model could not be trained")
    return folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = command_parser("python -m train.unseen", __doc__, needed=False)
    parser.add_argument("--model", help="model folder to score, or to train")
    parser.add_argument("--test", required=True, help="benchmark root to score on; never trained on")
    parser.add_argument("--domains", nargs="+", help="score these domains of it only")
    parser.add_argument("--name", default="all", help="name of the result files")
    options = parser.parse_args(arguments)
    return guarded(parser.prog, lambda: run(options))


def run(options: argparse.Namespace) -> None:
    """Train if asked to, score and report."""
    model = prepare_model(options)
    items = chosen_domains(load_benchmark(options.test), options.domains)
    detectors = detectors_of(model, options.relations_only)
    evaluations: dict[str, Evaluation] = {}
    for row, detector in detectors.items():
        detector.name = row
        check_out_of_sample(detector, items)
        evaluations[row] = evaluate(detector, items)
        clock_log(f"{row}: {summary(evaluations[row])}")
    folder = detectors["relations"].folder
    name, seed = str(folder.config.get("name")), int(folder.config.get("recipe", {}).get("seed", 0))
    about = header(items, seed, "train.unseen", model=made_by(folder.path, name))
    text, numbers = section("all domains", evaluations)
    for row in list(evaluations)[:-1]:
        text += "\n" + breakdown_table(evaluations[row], "by_domain").markdown()
    title = f"Unseen domains: `{name}`, {options.name}"
    note = f"Domains: {', '.join(sorted({item.domain for item in items}))}. The model saw nothing of them.\n"
    write_report(Path(options.output), f"unseen-{options.name}", title, about, [note, text], {"all": numbers})


def made_by(model: Path, name: str) -> dict[str, Any]:
    """Return a model's name and the header of the run that made it, where its folder says so."""
    path = model / "metrics.json"
    found: dict[str, Any] = {"name": name}
    if path.is_file():
        found["training"] = json.loads(path.read_text(encoding="utf-8")).get("training")
    return found


if __name__ == "__main__":
    sys.exit(main())
