"""The model card, written from measured numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from train.recipe import Recipe

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


def write_card(folder: Path, recipe: Recipe, about: Mapping[str, Any], measured: Mapping[str, Any]) -> None:
    """Write `README.md` and `metrics.json` of a model folder.

    Parameters
    ----------
    about : mapping
        Header of the training run.
    measured : mapping
        Results of `train.crossval`; the card quotes out-of-fold figures only.
    """
    metrics = {"training": dict(about), "out_of_fold": dict(measured)}
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
    (folder / "README.md").write_text("\n".join(lines), encoding="utf-8")
