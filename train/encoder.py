"""Training of the cross-encoder on top of relation scores."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from redclf.model.pair_encoder import PairEncoder
from redclf.runtime.fusion import Fusion
from train.data import Target
from train.lora import add_adapters, merge_adapters
from train.progress import progress_bar

#: What is trained: the layers above the frozen ones, all of them, the head alone, or low-rank adapters in all layers.
TUNINGS = ("top", "full", "frozen", "lora")

#: Weights of a run that is complete.
TRAINED = "encoder.safetensors"


def is_trained(directory: Path) -> bool:
    """Whether a run in this folder is complete."""
    return (directory / TRAINED).exists()


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of one training run."""

    epochs: float = 1.0
    batch_targets: int = 16
    learning_rate: float = 8e-5
    head_learning_rate: float = 1e-3
    weight_decay: float = 0.01
    warmup: float = 0.1
    text_loss: float = 0.5
    checkpoint_seconds: float = 240.0
    tuning: str = "top"
    lora_rank: int = 16


def collate(ids: Sequence[Sequence[int]], first: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """Pad pairs to a batch of input ids, attention mask and segment ids."""
    longest = max(len(row) for row in ids)
    inputs = torch.zeros(len(ids), longest, dtype=torch.long)
    mask = torch.zeros(len(ids), longest, dtype=torch.long)
    segments = torch.zeros(len(ids), longest, dtype=torch.long)
    for row, (tokens, head) in enumerate(zip(ids, first, strict=True)):
        inputs[row, : len(tokens)] = torch.tensor(tokens)
        mask[row, : len(tokens)] = 1
        segments[row, head : len(tokens)] = 1
    return inputs, mask, segments


class StateCache:
    """States of the frozen layers, computed once for each distinct pair and kept in float16.

    Parameters
    ----------
    module : PairEncoder
    batch : int
        Pairs a forward pass.
    """

    def __init__(self, module: PairEncoder, batch: int = 32, log: Callable[[str], None] = print) -> None:
        self.module = module
        self.batch = batch
        self.log = log
        self.rows: dict[tuple[int, ...], np.ndarray] = {}

    @staticmethod
    def key(ids: Sequence[int], first: int) -> tuple[int, ...]:
        """Return what identifies a pair."""
        return (first, *ids)

    @torch.inference_mode()
    def add(self, targets: Sequence[Target]) -> None:
        """Compute the states of all pairs that are not known yet."""
        missing = {
            self.key(ids, first): (ids, first)
            for target in targets
            for ids, first in zip(target.pairs, target.first, strict=True)
            if self.key(ids, first) not in self.rows
        }
        todo = sorted(missing.values(), key=lambda pair: len(pair[0]))
        started = time.time()
        self.module.eval()
        for start in range(0, len(todo), self.batch):
            chunk = todo[start : start + self.batch]
            inputs, mask, segments = collate([ids for ids, _ in chunk], [first for _, first in chunk])
            given = _beside(self.module, inputs, mask, segments)
            states = self.module.lower_states(*given).to(torch.float16).cpu().numpy()
            for row, (ids, first) in zip(states, chunk, strict=True):
                self.rows[self.key(ids, first)] = row[: len(ids)].copy()
            if (start // self.batch) % 50 == 0:
                self.log(f"frozen layers: {start}/{len(todo)} pairs, {time.time() - started:.0f} s")

    def states(self, ids: Sequence[Sequence[int]], first: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return padded states and attention mask of pairs."""
        rows = [self.rows[self.key(i, f)] for i, f in zip(ids, first, strict=True)]
        longest = max(len(row) for row in rows)
        out = torch.zeros(len(rows), longest, rows[0].shape[1])
        mask = torch.zeros(len(rows), longest, dtype=torch.long)
        for place, row in enumerate(rows):
            out[place, : len(row)] = torch.from_numpy(row).float()
            mask[place, : len(row)] = 1
        return out, mask


def _losses(outputs: Tensor, batch: Sequence[Target], text_loss: float) -> Tensor:
    total = outputs.new_zeros(())
    start = 0
    weight_sum = sum(target.weight for target in batch)
    for target in batch:
        count = len(target.pairs)
        rows = outputs[start : start + count]
        start += count
        label = rows.new_tensor(float(target.redundant))
        redundant = rows[:, 0].mean() + target.logit
        loss = functional.binary_cross_entropy_with_logits(redundant, label)
        text = functional.binary_cross_entropy_with_logits(rows[:, 5].mean(), label)
        if target.redundant and target.gold is not None:
            cells = torch.tensor(np.asarray(target.cells, dtype=np.float32), device=rows.device)
            cells[:, target.chosen] = cells[:, target.chosen] + rows[:, 1:5].T
            loss = loss - torch.log_softmax(cells.flatten(), 0)[target.category * cells.shape[1] + target.gold]
            alone = torch.log_softmax(rows[:, 6:10].T.reshape(-1), 0).reshape(4, count)
            if target.gold in target.chosen:
                text = text - alone[target.category, target.chosen.index(target.gold)]
            else:
                text = text - torch.logsumexp(alone[target.category], 0)
        total = total + target.weight * (loss + text_loss * text)
    return total / weight_sum


@torch.inference_mode()
def predict(
    module: PairEncoder, cache: StateCache | None, targets: Sequence[Target], batch: int = 16
) -> list[np.ndarray]:
    """Return the head's outputs of each target, shape (n_pairs, 10)."""
    module.eval()
    out = []
    for start in range(0, len(targets), batch):
        chunk = targets[start : start + batch]
        outputs = _forward(module, cache, chunk).float().cpu().numpy()
        ends = np.cumsum([len(t.pairs) for t in chunk])
        out += [outputs[end - len(t.pairs) : end] for end, t in zip(ends, chunk, strict=True)]
    return out


def _forward(module: PairEncoder, cache: StateCache | None, batch: Sequence[Target]) -> Tensor:
    ids = [pair for target in batch for pair in target.pairs]
    first = [length for target in batch for length in target.first]
    if cache is not None:
        return module.from_lower(*_beside(module, *cache.states(ids, first)))
    return module.forward(*_beside(module, *collate(ids, first)))


def _beside(module: PairEncoder, *tensors: Tensor) -> list[Tensor]:
    """Return tensors on the device of a module's parameters."""
    device = next(module.parameters()).device
    return [tensor.to(device) for tensor in tensors]


def order_batches(targets: Sequence[Target], size: int, seed: int) -> list[list[int]]:
    """Return batches of target places: shuffled, and bucketed by length within a stretch."""
    rng = np.random.default_rng(seed)
    places = rng.permutation(len(targets))
    batches = []
    stretch = size * 16
    for start in range(0, len(places), stretch):
        part = sorted(places[start : start + stretch], key=lambda i: max(len(p) for p in targets[i].pairs))
        batches += [[int(i) for i in part[k : k + size]] for k in range(0, len(part), size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def train_encoder(
    module: PairEncoder,
    targets: Sequence[Target],
    settings: TrainingSettings,
    directory: Path,
    cache: StateCache | None,
    held_out: Sequence[Target] = (),
    seed: int = 0,
    log: Callable[[str], None] = print,
) -> PairEncoder:
    """Fine-tune the module; goes on from its last checkpoint after a kill.

    Loss and held-out scores go to `training.jsonl` in `directory`.
    """
    from accelerate import Accelerator

    directory.mkdir(parents=True, exist_ok=True)
    done = directory / TRAINED
    if is_trained(directory):
        from safetensors.torch import load_file

        module.load_state_dict(load_file(str(done)))
        return module
    torch.manual_seed(seed)
    accelerator = Accelerator()
    _choose_parameters(module, settings)
    head = list(module.head.parameters())
    body = [p for name, p in module.named_parameters() if p.requires_grad and not name.startswith("head.")]
    groups = [{"params": head, "lr": settings.head_learning_rate}]
    if body:
        groups.append({"params": body, "lr": settings.learning_rate})
    optimiser = torch.optim.AdamW(groups, weight_decay=settings.weight_decay)
    epochs = math.ceil(settings.epochs)
    batches = [b for e in range(epochs) for b in order_batches(targets, settings.batch_targets, seed + e)]
    total = max(1, round(len(batches) * settings.epochs / max(epochs, 1)))
    warm = max(1, int(total * settings.warmup))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda s: min((s + 1) / warm, max(0.0, (total - s) / max(1, total - warm)))
    )
    prepared, optimiser, schedule = accelerator.prepare(module, optimiser, schedule)
    begin = _load_checkpoint(accelerator, directory)
    if begin:
        log(f"resumed at step {begin} of {total}")
    started = saved = time.time()
    running: list[float] = []
    with (
        (directory / "training.jsonl").open("a", encoding="utf-8") as journal,
        progress_bar("training", total, begin) as advance,
    ):
        for step in range(begin, total):
            prepared.train()
            batch = [targets[i] for i in batches[step]]
            unwrapped = accelerator.unwrap_model(prepared)
            with accelerator.autocast():
                outputs = _forward(unwrapped, cache, batch)
            loss = _losses(outputs.float(), batch, settings.text_loss)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(prepared.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
            running.append(float(loss.detach()))
            advance()
            if (step + 1) % 25 == 0 or step + 1 == total:
                rate = (time.time() - started) / (step + 1 - begin)
                record: dict[str, float] = {"step": step + 1, "of": total, "loss": round(float(np.mean(running)), 4)}
                running.clear()
                if held_out and ((step + 1) % 200 == 0 or step + 1 == total):
                    record |= held_out_scores(unwrapped, cache, held_out)
                journal.write(json.dumps(record) + "\n")
                journal.flush()
                log(f"{record} {rate:.2f} s/step, {(total - step - 1) * rate / 60:.1f} min left")
            if time.time() - saved > settings.checkpoint_seconds:
                _save_checkpoint(accelerator, directory, step + 1)
                saved = time.time()
    trained: PairEncoder = accelerator.unwrap_model(prepared)
    if settings.tuning == "lora":
        merge_adapters(trained)
    from safetensors.torch import save_file

    part = done.with_suffix(".part")
    save_file({k: v.contiguous() for k, v in trained.state_dict().items()}, str(part))
    part.replace(done)
    return trained


def _choose_parameters(module: PairEncoder, settings: TrainingSettings) -> None:
    """Say which parameters are trained: the upper layers, all, none but the head, or adapters."""
    if settings.tuning not in TUNINGS:
        raise ValueError(f"training.tuning: expected one of {', '.join(TUNINGS)}, got {settings.tuning!r}")
    if settings.tuning == "lora":
        add_adapters(module, settings.lora_rank)
        return
    for parameter in [*module.embeddings.parameters(), *module.lower.parameters()]:
        parameter.requires_grad_(settings.tuning == "full")
    if settings.tuning == "frozen":
        for parameter in module.upper.parameters():
            parameter.requires_grad_(False)


def _save_checkpoint(accelerator: Any, directory: Path, step: int) -> None:
    """Save beside the last checkpoint and only then point to it: a kill at any moment leaves one that is whole."""
    pointer = directory / "checkpoint.json"
    last = json.loads(pointer.read_text()) if pointer.exists() else {}
    folder = "checkpoint-b" if last.get("folder") == "checkpoint-a" else "checkpoint-a"
    accelerator.save_state(str(directory / folder))
    part = pointer.with_suffix(".part")
    part.write_text(json.dumps({"step": step, "folder": folder}))
    part.replace(pointer)


def _load_checkpoint(accelerator: Any, directory: Path) -> int:
    """Load the last checkpoint and return its step, 0 without one."""
    pointer = directory / "checkpoint.json"
    if not pointer.exists():
        return 0
    last = json.loads(pointer.read_text())
    accelerator.load_state(str(directory / last.get("folder", "checkpoint")))
    return int(last["step"])


def held_out_scores(module: PairEncoder, cache: StateCache | None, targets: Sequence[Target]) -> dict[str, float]:
    """Return cross-entropies on held-out targets: with the text, and by relations alone."""
    outputs = predict(module, cache, targets)
    sums = {"redundant": 0.0, "redundant_relations": 0.0, "cell": 0.0, "cell_relations": 0.0}
    gold = 0
    for rows, target in zip(outputs, targets, strict=True):
        plain = Fusion()
        logit, cells = plain.log_odds(rows, target.logit), plain.join(rows, target.chosen, target.cells)
        sign = 1 if target.redundant else -1
        sums["redundant"] += float(np.logaddexp(0, -sign * logit))
        sums["redundant_relations"] += float(np.logaddexp(0, -sign * target.logit))
        if target.redundant and target.gold is not None:
            gold += 1
            sums["cell"] -= float(cells[target.category, target.gold])
            sums["cell_relations"] -= float(target.cells[target.category, target.gold])
    n = max(len(targets), 1)
    return {
        f"held_out_{key}": round(value / (n if key.startswith("redundant") else max(gold, 1)), 4)
        for key, value in sums.items()
    }
