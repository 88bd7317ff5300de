"""The model card, written from measured numbers.

    python -m train.card models/redclf-minilm --metrics results/crossval-minilm.json --unseen results/unseen-final.json

writes the card of a finished model again, with what was measured since.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from train.command import guarded
from train.recipe import Recipe, recipe_of

#: Columns of the card: title and path in an evaluation.
COLUMNS = (
    ("StepCls", ("stepcls", "accuracy")),
    ("category", ("category", "accuracy")),
    ("EvidenceRet", ("evidenceret", "accuracy")),
    ("StepDet mean", ("stepdet", "at_least_one", "mean")),
    ("AP", ("localisation", "ap")),
    ("precision", ("localisation", "precision")),
    ("recall", ("localisation", "recall")),
)


def score_rows(measured: Mapping[str, Any], part: str) -> list[str]:
    """Return Markdown rows for the ablation of one part of a cross-validation."""
    rows = []
    for name in ("relations", "text", "both"):
        scores = measured.get(part, {}).get(name)
        if scores is None:
            continue
        values = []
        for _, path in COLUMNS:
            value: Any = scores
            for key in path:
                value = value[key]
            values.append("-" if value is None else f"{100 * value:.1f}")
        rows.append(f"| {part} | {name} | " + " | ".join(values) + " |")
    return rows


def write_card(
    folder: Path,
    recipe: Recipe,
    about: Mapping[str, Any],
    measured: Mapping[str, Any],
    unseen: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write `README.md` and `metrics.json` of a model folder.

    Parameters
    ----------
    about : mapping
        Header of the training run.
    measured : mapping
        Results of `train.crossval`; the card quotes out-of-fold figures only.
    unseen : sequence of mapping
        Results of `train.unseen` for this model.
    """
    metrics = {"training": dict(about), "out_of_fold": dict(measured), "unseen": [dict(found) for found in unseen]}
    (folder / "metrics.json").write_text(json.dumps(metrics, indent=1) + "\n", encoding="utf-8")
    lines = [
        f"# redclf-{recipe.name}",
        "",
        "Finds redundant steps in trajectories of LLM agents. Gradient boosting on the relations between steps, and a",
        f"cross-encoder ({recipe.base}, {recipe.encoder.layers} layers, int8) that adds what the text says.",
        "",
        "- **Input**: messages and policy of a trajectory. **Output**: per step the probability that it is redundant,",
        "  its category and its evidence.",
        f"- **Trained on**: {about['data']['trajectories']} trajectories (digest `{about['data']['digest']}`), listed",
        "  by hash in `trained_on.json`; evaluation on them is refused unless asked for.",
        f"- **Made by**: `{about['command']}`, seed {about['seed']}, commit `{about['commit']}`.",
        "- **Limits**: labels come from customer-service agents and one coding agent; redundancy is defined on runs",
        "  that succeeded. A prediction is advice, not proof.",
        "",
    ]
    rows = [row for part in ("benchmark", "coding") for row in score_rows(measured, part)]
    if rows:
        made = measured["about"]
        lines += [
            "## Out-of-fold scores, %",
            "",
            "Of models trained the same way without the fold that is scored (StepDet with at least one prediction).",
            "",
            "| part | row | " + " | ".join(title for title, _ in COLUMNS) + " |",
            "|---|---|" + "---|" * len(COLUMNS),
            *rows,
            "",
            f"`{made['command']}`, seed {made['seed']}, commit `{made['commit']}`.",
            "",
        ]
    if unseen:
        lines += [
            "## Unseen domains, %",
            "",
            "This model on tools and domains of which training saw nothing.",
            "",
            "| domains | row | " + " | ".join(title for title, _ in COLUMNS) + " |",
            "|---|---|" + "---|" * len(COLUMNS),
        ]
        for found in unseen:
            rows = score_rows({", ".join(domains_of(found)): found["all"]}, ", ".join(domains_of(found)))
            lines += rows
        lines += ["", *(f"`{found['about']['command']}`, commit `{found['about']['commit']}`." for found in unseen), ""]
    (folder / "README.md").write_text("\n".join(lines), encoding="utf-8")


def domains_of(unseen: Mapping[str, Any]) -> list[str]:
    """Return the domains that were scored."""
    return sorted(unseen["all"]["both" if "both" in unseen["all"] else "relations"]["by_domain"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m train.card", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model", help="model folder")
    parser.add_argument("--metrics", help="results of train.crossval; those that the card has, by default")
    parser.add_argument("--unseen", nargs="+", default=[], help="results of train.unseen for this model")
    options = parser.parse_args(arguments)
    return guarded(parser.prog, lambda: rewrite(Path(options.model), options.metrics, options.unseen))


def rewrite(folder: Path, measured: str | None, unseen: Sequence[str]) -> None:
    """Write a finished model's card again.

    Raises
    ------
    ValueError
        If a result is another model's.
    """
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    found = [json.loads(Path(path).read_text(encoding="utf-8")) for path in unseen]
    for path, result in zip(unseen, found, strict=True):
        if result["about"]["model"].get("training") != metrics["training"]:
            raise ValueError(f"{path}: expected results of {folder}, found another model's")
    crossed = metrics["out_of_fold"]
    if measured:
        crossed = json.loads(Path(measured).read_text(encoding="utf-8"))
        if crossed["about"]["recipe"] != config["recipe"]:
            raise ValueError(f"{measured}: expected results of the recipe of {folder}, found another's")
    write_card(folder, recipe_of(config["recipe"]), metrics["training"], crossed, found)


if __name__ == "__main__":
    sys.exit(main())
