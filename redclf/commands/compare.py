"""`redclf compare`: several detectors on the same trajectories."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from redclf.benchmark.compare import Comparison, Row, sweep, unique_labels
from redclf.benchmark.data import LabelledTrajectory, load_benchmark, spread
from redclf.benchmark.evaluate import check_out_of_sample, count_in_sample, evaluate
from redclf.benchmark.published import load_published
from redclf.benchmark.results import ResultFileDetector, result_record, write_results
from redclf.benchmark.tables import IN_SAMPLE
from redclf.commands.output import atomic_writer, complain, console, count
from redclf.detectors.base import Detector
from redclf.detectors.cascade import CascadeDetector
from redclf.detectors.endpoint import EndpointDetector
from redclf.detectors.registry import create_detector
from redclf.errors import RedclfError
from redclf.hashing import trajectory_hash
from redclf.llm.prices import load_prices
from redclf.llm.runner import EndpointError
from redclf.llm.usage import Usage
from redclf.tokens import estimate_tokens

#: The tables with intervals are wide.
_WIDTH = 170
#: Output tokens of a request that a dry run reckons with, by task: records of some 45 tokens, five in StepDet.
_OUTPUT = {"stepcls": 45, "evidenceret": 45, "stepdet": 225}

BEGIN, END = "<!-- redclf compare: begin -->", "<!-- redclf compare: end -->"
_LOCAL = re.compile(r"localhost|127(\.\d+){3}|::1|0\.0\.0\.0")


@dataclass(frozen=True)
class CompareOptions:
    """The options of `redclf compare`."""

    data: Path
    detectors: tuple[str, ...]
    subset: str | None = None
    domain: str | None = None
    limit: int | None = None
    model: str | None = None
    json_file: Path | None = None
    markdown: Path | None = None
    csv: Path | None = None
    plots: Path | None = None
    output: Path | None = None
    readme: Path | None = None
    requests: Path | None = None
    prices: Path | None = None
    dry_run: bool = False
    allow_train: bool = False


def run_compare(options: CompareOptions) -> None:
    """Run the command.

    Raises
    ------
    RedclfError
        If the data or a detector can't be loaded, an endpoint can't be used, or figures would be in-sample.
    """
    if not options.detectors or len(set(options.detectors)) < len(options.detectors):
        raise RedclfError(f"--detectors: expected different names, got {','.join(options.detectors) or 'none'}")
    judges = _create(options)
    items = _load(options)
    for judge in judges.values():
        check_out_of_sample(judge, items, options.allow_train)
    if options.readme is not None:
        _check_readme(options, judges, items)
    if options.dry_run:
        _dry_run(options, judges, items)
        return
    try:
        rows = [_score(spec, judge, items) for spec, judge in judges.items()]
        # At the end, when the replies of all judges are recorded.
        for place, judge in enumerate(judges.values()):
            if isinstance(judge, CascadeDetector):
                rows[place] = replace(rows[place], band=sweep(judge, items))
        comparison = Comparison(unique_labels(rows), load_published())
        _show(comparison)
        _write(options, comparison, judges, items)
    finally:
        for judge in judges.values():
            for endpoint in _endpoints(judge):
                endpoint.sender.close()


def _create(options: CompareOptions) -> dict[str, Detector]:
    judges: dict[str, Detector] = {}
    table = None if options.prices is None else load_prices(options.prices)
    for spec in options.detectors:
        modelled = spec in ("cross-encoder", "relations") or spec.startswith("cascade:")
        judge = create_detector(spec, options.model if modelled else None, options.data, options.requests)
        for endpoint in _endpoints(judge):
            if endpoint.price is None and table is not None:
                endpoint.price = table.models.get(endpoint.config.model)
        judges[spec] = judge
    return judges


def _endpoints(judge: Detector) -> Iterator[EndpointDetector]:
    """Yield the detectors behind an API that a detector is or holds."""
    if isinstance(judge, EndpointDetector):
        yield judge
    elif isinstance(judge, CascadeDetector) and isinstance(judge.second, EndpointDetector):
        yield judge.second


def _load(options: CompareOptions) -> list[LabelledTrajectory]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        items = load_benchmark(options.data, options.subset, options.domain)
    for warning in caught:
        complain(str(warning.message), "warning")
    return items if options.limit is None else spread(items, options.limit)


def _score(spec: str, judge: Detector, items: Sequence[LabelledTrajectory]) -> Row:
    from rich.console import Console
    from rich.progress import Progress

    endpoints = list(_endpoints(judge))
    repeated = sum(endpoint.sender.retried for endpoint in endpoints)
    with Progress(console=Console(file=sys.stderr), transient=True, disable=not sys.stderr.isatty()) as bar:
        asking = bar.add_task(f"{judge.name}: asking", total=None, visible=bool(endpoints))
        judge.prepare(items, lambda done: bar.update(asking, completed=done))
        scoring = bar.add_task(f"{judge.name}: scoring", total=len(items))
        for endpoint in endpoints:
            endpoint.reset()
        started = time.perf_counter()
        evaluation = evaluate(judge, items, lambda done, _: bar.update(scoring, completed=done))
        seconds = round(time.perf_counter() - started, 3)
    if isinstance(judge, ResultFileDetector):
        recorded = judge.header.get("usage")
        usage = Usage.from_dict(recorded) if isinstance(recorded, dict) else Usage(failed=evaluation.failed)
    elif isinstance(judge, EndpointDetector | CascadeDetector):
        usage = judge.usage()
        repeated = sum(endpoint.sender.retried for endpoint in endpoints) - repeated
        reasons = [reason for endpoint in endpoints for reason in endpoint.unanswered()]
        if reasons and len(reasons) == usage.requests:
            raise EndpointError(f"{judge.name}: none of {count(len(reasons), 'request')} got an answer: {reasons[0]}")
        _report(judge.name, usage, repeated, reasons)
    else:
        usage = Usage(0, 0, 0, 0, seconds, 0.0)
    label = f"{judge.name} ({IN_SAMPLE})" if evaluation.in_sample else judge.name
    return Row(spec, label, evaluation, usage)


def _report(name: str, usage: Usage, repeated: int, reasons: Sequence[str]) -> None:
    """Say what went wrong on the way, if anything did."""
    if repeated or usage.failed:
        text = f"{name}: {count(usage.failed or 0, 'request')} of {usage.requests or 0:,} without a usable answer"
        text += f", {count(repeated, 'attempt')} repeated" if repeated else ""
        text += f"; {len(reasons):,} had no answer at all, the first: {reasons[0]}" if reasons else ""
        complain(text, "warning")


def _show(comparison: Comparison) -> None:
    screen = console(_WIDTH)
    for table in comparison.tables():
        screen.print(table.rich())
    screen.print(comparison.published.note(comparison.domains), markup=False)


def _dry_run(options: CompareOptions, judges: dict[str, Detector], items: Sequence[LabelledTrajectory]) -> None:
    screen = console(_WIDTH)
    asked = False
    for spec, judge in judges.items():
        for endpoint in _endpoints(judge):
            asked = True
            planned = judge.planned(items) if isinstance(judge, CascadeDetector) else endpoint.planned(items)
            digest = sha256(spec.encode()).hexdigest()[:8]
            path = endpoint.sender.log.path.with_name(f"{Path(endpoint.config.log_name).stem}-{digest}.prompts.jsonl")
            path.parent.mkdir(parents=True, exist_ok=True)
            number = recorded = given = produced = 0
            with atomic_writer(path) as stream:
                for request in planned:
                    prompt = endpoint.prompt(request)
                    line = {"key": request.key, "task": request.task, "trajectory_id": request.trajectory_id}
                    stream.write(json.dumps(line | {"prompt": prompt}) + "\n")
                    if endpoint.sender.log.get(request.key) is not None:
                        recorded += 1
                        continue
                    number += 1
                    given += estimate_tokens(json.dumps(prompt, ensure_ascii=False))
                    produced += _OUTPUT[request.task]
            cost = "no price known" if endpoint.price is None else f"about ${endpoint.price.cost(given, produced):.4f}"
            screen.print(
                f"{judge.name}: {count(number, 'request')} to send, {recorded:,} on file; about {given:,} input and "
                f"{produced:,} output tokens, {cost}; prompts in {path}",
                markup=False,
                soft_wrap=True,
            )
    screen.print("nothing sent" if asked else "nothing to send: no detector behind an API", markup=False)


def _write(
    options: CompareOptions, comparison: Comparison, judges: dict[str, Detector], items: Sequence[LabelledTrajectory]
) -> None:
    if options.output is not None:
        _write_results(options.output, comparison, judges, items)
    if options.json_file is not None:
        with atomic_writer(options.json_file) as stream:
            json.dump(comparison.to_dict(), stream, indent=2, ensure_ascii=False, allow_nan=False)
            stream.write("\n")
    for path, text in ((options.markdown, comparison.markdown), (options.csv, comparison.csv)):
        if path is not None:
            with atomic_writer(path) as stream:
                stream.write(text())
    if options.plots is not None:
        from redclf.benchmark.plots import write_plots

        write_plots(comparison, options.plots)
    if options.readme is not None:
        _write_readme(options, comparison)


def _write_results(
    folder: Path, comparison: Comparison, judges: dict[str, Detector], items: Sequence[LabelledTrajectory]
) -> None:
    from redclf import __version__

    digest = sha256("".join(sorted(trajectory_hash(item.trajectory) for item in items)).encode()).hexdigest()[:16]
    for row, judge in zip(comparison.rows, judges.values(), strict=True):
        header: dict[str, Any] = {
            "name": row.label,
            "detector": row.spec,
            "data": {"trajectories": len(items), "digest": digest},
            "version": __version__,
        }
        trained_on = judge.trained_on()
        if trained_on:
            header["trained_on"] = sorted(trained_on)
        if isinstance(judge, EndpointDetector | CascadeDetector):
            header["endpoints"] = [endpoint.config.base_url for endpoint in _endpoints(judge)]
            # Without the time, so that a run which was interrupted writes the same file as one which was not.
            header["usage"] = row.usage.to_dict() | {"seconds": None}
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", row.spec.removesuffix(".jsonl")).strip("-.")
        write_results(folder / f"{name}.jsonl", header, (result_record(judge, item) for item in items))


def _check_readme(options: CompareOptions, judges: dict[str, Detector], items: Sequence[LabelledTrajectory]) -> None:
    """Refuse beforehand what may not stand in a README, and a file without the markers."""
    for spec, judge in judges.items():
        if options.allow_train and count_in_sample(judge, items):
            raise RedclfError(f"--readme: expected no in-sample figures, {spec} was trained on these trajectories")
        addresses = [endpoint.config.base_url for endpoint in _endpoints(judge)]
        if isinstance(judge, ResultFileDetector):
            recorded = judge.header.get("endpoints")
            addresses += [str(address) for address in recorded] if isinstance(recorded, list) else []
        if any(_LOCAL.fullmatch(urlsplit(address).hostname or "") for address in addresses):
            raise RedclfError(f"--readme: expected scores of real endpoints, {spec} was asked on this machine")
    assert options.readme is not None
    _split_readme(options.readme)


def _split_readme(path: Path) -> tuple[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise RedclfError(f"--readme: expected a text file, got {path}") from None
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise RedclfError(f"--readme: expected the lines {BEGIN} and {END} in {path}")
    return before, after


def _write_readme(options: CompareOptions, comparison: Comparison) -> None:
    assert options.readme is not None
    before, after = _split_readme(options.readme)
    command = f"redclf compare --data ROOT --detectors {shlex.quote(','.join(options.detectors))}"
    for name in ("subset", "domain", "limit"):
        value = getattr(options, name)
        command += "" if value is None else f" --{name} {shlex.quote(str(value))}"
    section = comparison.readme(f"{command} --readme {options.readme.name}")
    with atomic_writer(options.readme) as stream:
        stream.write(f"{before}{BEGIN}\n{section}{END}{after}")
