"""The `redclf` command. Thin: what each command does stands in `redclf.commands`.

Nothing heavy is imported here, so that `redclf --version` and errors come at once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from redclf.commands.output import OutputClosed, complain
from redclf.errors import RedclfError

#: Exit code of every error.
FAILURE = 2
_INTERRUPTED = 130

app = typer.Typer(
    name="redclf",
    help="Find the redundant steps in the recorded run of an LLM agent.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_DETECTOR = (
    "cross-encoder, relations, heuristic, majority, llm:CONFIG or llm:MODEL@BASE_URL, jev:CONFIG, "
    "cascade:FIRST+SECOND, or a .jsonl file of recorded results."
)
_MODEL = "Folder of a model, or the name of a shipped one."


def _check_threshold(threshold: float | None) -> None:
    if threshold is not None and not 0 <= threshold <= 1:
        raise RedclfError(f"--threshold: expected a number from 0 to 1, got {threshold}")


def _show_version(wanted: bool) -> None:
    if wanted:
        from redclf import __version__

        typer.echo(f"redclf {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def detect(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Trace files, or folders of them.")],
    format: Annotated[str, typer.Option(help="Trace format (see `redclf formats`); told from the content.")] = "auto",
    detector: Annotated[str, typer.Option(help=_DETECTOR)] = "cross-encoder",
    model: Annotated[str | None, typer.Option(metavar="DIR", help=_MODEL)] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Least probability of redundancy, 0 to 1; the model's own by default.")
    ] = None,
    top_k: Annotated[int | None, typer.Option(help="Show this many steps a trajectory at most.")] = None,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the JSON lines to FILE.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a trajectory.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first error.")] = False,
    workers: Annotated[int, typer.Option(metavar="N", help="Score in N processes; 0 for one a core.")] = 1,
    engine: Annotated[str, typer.Option(help="local, or ray: N actors on a Ray cluster (extra `ray`).")] = "local",
    redact: Annotated[
        bool, typer.Option("--redact", help="Mask keys, tokens, passwords, e-mail and card numbers in all output.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the unfinished --output of a killed run.")
    ] = False,
) -> None:
    """Find the redundant steps of recorded runs."""
    from redclf.commands.detect import ENGINES, DetectOptions, run_detect

    _check_threshold(threshold)
    if top_k is not None and top_k < 1:
        raise RedclfError(f"--top-k: expected a whole number from 1, got {top_k}")
    if workers < 0:
        raise RedclfError(f"--workers: expected a whole number from 0, got {workers}")
    if engine not in ENGINES:
        raise RedclfError(f"--engine: expected one of {', '.join(ENGINES)}, got {engine!r}")
    options = DetectOptions(
        paths=tuple(paths),
        format=format,
        detector=detector,
        model=model,
        threshold=threshold,
        top_k=top_k,
        output=output,
        as_json=as_json,
        strict=strict,
        workers=workers or os.cpu_count() or 1,
        engine=engine,
        resume=resume,
        redact=redact,
    )
    if run_detect(options):
        raise typer.Exit(FAILURE)


@app.command()
def prune(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Trace files, or folders of them.")],
    output: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write to; file names stay.")],
    format: Annotated[str, typer.Option(help="Trace format (see `redclf formats`); told from the content.")] = "auto",
    to: Annotated[str, typer.Option(help="Format to write: same, or openai_chat.")] = "same",
    detector: Annotated[str, typer.Option(help=_DETECTOR)] = "cross-encoder",
    model: Annotated[str | None, typer.Option(metavar="DIR", help=_MODEL)] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Least probability of redundancy, 0 to 1; the model's own by default.")
    ] = None,
    writes: Annotated[bool, typer.Option("--writes", help="Take out steps that changed something, too.")] = False,
    placeholder: Annotated[
        bool, typer.Option("--placeholder", help="Leave a line that points to the evidence in place of each result.")
    ] = False,
    map_file: Annotated[
        Path | None, typer.Option("--map", metavar="FILE", help="Write what went, and old to new message indices.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first error.")] = False,
) -> None:
    """Write recorded runs back without their redundant steps."""
    from redclf.commands.prune import TARGETS, PruneOptions, run_prune

    _check_threshold(threshold)
    if to not in TARGETS:
        raise RedclfError(f"--to: expected one of {', '.join(TARGETS)}, got {to!r}")
    options = PruneOptions(
        paths=tuple(paths),
        output=output,
        format=format,
        to=to,
        detector=detector,
        model=model,
        threshold=threshold,
        writes=writes,
        placeholder=placeholder,
        map_file=map_file,
        strict=strict,
    )
    if run_prune(options):
        raise typer.Exit(FAILURE)


@app.command()
def summary(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Trace files, or folders of them.")],
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the figures to FILE.")] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the figures as CSV.")] = None,
    format: Annotated[str, typer.Option(help="Trace format (see `redclf formats`); told from the content.")] = "auto",
    detector: Annotated[str, typer.Option(help=_DETECTOR)] = "cross-encoder",
    model: Annotated[str | None, typer.Option(metavar="DIR", help=_MODEL)] = None,
    threshold: Annotated[float | None, typer.Option(help="Least probability of redundancy, 0 to 1.")] = None,
    prices: Annotated[Path | None, typer.Option(metavar="FILE", help="Price table; the shipped one else.")] = None,
    priced_as: Annotated[
        str | None, typer.Option(metavar="NAME", help="Model whose price applies where a trace names none.")
    ] = None,
) -> None:
    """Say where the waste is: by category, tool, model and file, in tokens and money."""
    from redclf.commands.summary import SummaryOptions, run_summary

    _check_threshold(threshold)
    options = SummaryOptions(tuple(paths), format, detector, model, threshold, prices, priced_as)
    if run_summary(options, json_file, csv_file):
        raise typer.Exit(FAILURE)


@app.command()
def gate(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Trace files, or folders of them.")],
    max_share: Annotated[
        list[str] | None, typer.Option(metavar="[CATEGORY=]X", help="Share of steps that may be redundant, 0 to 1.")
    ] = None,
    max_count: Annotated[
        list[str] | None, typer.Option(metavar="[CATEGORY=]N", help="Redundant steps, in all or of a category.")
    ] = None,
    max_tokens: Annotated[
        list[str] | None, typer.Option(metavar="[CATEGORY=]N", help="Tokens that redundant steps may cost.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="No larger a share than in this summary, by category, too.")
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Share of steps by which the baseline may be exceeded.")] = 0.0,
    write_baseline: Annotated[Path | None, typer.Option(metavar="FILE", help="Write this run's summary.")] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the verdict as JUnit XML.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the verdict as Markdown.")] = None,
    format: Annotated[str, typer.Option(help="Trace format (see `redclf formats`); told from the content.")] = "auto",
    detector: Annotated[str, typer.Option(help=_DETECTOR)] = "cross-encoder",
    model: Annotated[str | None, typer.Option(metavar="DIR", help=_MODEL)] = None,
    threshold: Annotated[float | None, typer.Option(help="Least probability of redundancy, 0 to 1.")] = None,
) -> None:
    """Check limits on waste, for CI: exit code 1 where one is broken, 2 after an error."""
    from redclf.commands.summary import GateOptions, SummaryOptions, run_gate
    from redclf.gate import COUNT, SHARE, TOKENS, parse_limit

    _check_threshold(threshold)
    if not 0 <= tolerance <= 1:
        raise RedclfError(f"--tolerance: expected a number from 0 to 1, got {tolerance}")
    given = ((SHARE, max_share), (COUNT, max_count), (TOKENS, max_tokens))
    limits = tuple(parse_limit(kind, text) for kind, texts in given for text in texts or ())
    options = SummaryOptions(tuple(paths), format, detector, model, threshold)
    if not run_gate(options, GateOptions(limits, baseline, tolerance, write_baseline, junit, markdown)):
        raise typer.Exit(1)


@app.command()
def reduce_replay(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Trace files, or folders of them.")],
    reflector: Annotated[
        str, typer.Option(metavar="R,...", help="Any of classifier, none, delete, random, truncate.")
    ] = "classifier",
    theta: Annotated[int, typer.Option(help="Tokens up to which a step is left alone.")] = 500,
    a: Annotated[int, typer.Option(help="Steps that are left alone at the end of the context.")] = 2,
    b: Annotated[int, typer.Option(help="Further steps that a reflector may see before them.")] = 1,
    format: Annotated[str, typer.Option(help="Trace format (see `redclf formats`); told from the content.")] = "auto",
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the figures to FILE.")] = None,
    prices: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Price table, JSON; the shipped one else.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose prices apply; the trace's own model else.")
    ] = None,
) -> None:
    """Play recorded runs through a context reducer: what it saves, and what the agent would have missed."""
    from redclf.commands.reduce_replay import ReplayOptions, run_reduce_replay

    for name, value, least in (("theta", theta, 0), ("a", a, 1), ("b", b, 0)):
        if value < least:
            raise RedclfError(f"--{name}: expected a whole number from {least}, got {value}")
    options = ReplayOptions(
        paths=tuple(paths),
        reflectors=tuple(name for part in reflector.split(",") if (name := part.strip())),
        theta=theta,
        a=a,
        b=b,
        format=format,
        json_file=json_file,
        prices=prices,
        model=model,
    )
    if run_reduce_replay(options):
        raise typer.Exit(FAILURE)


@app.command()
def evaluate(
    data: Annotated[Path, typer.Option(metavar="ROOT", help="Folder of the benchmark's release.")],
    subset: Annotated[str | None, typer.Option(help="Only this subset.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only this domain.")] = None,
    detector: Annotated[str, typer.Option(help=_DETECTOR)] = "cross-encoder",
    model: Annotated[str | None, typer.Option(metavar="DIR", help=_MODEL)] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the scores to FILE.")] = None,
    allow_train: Annotated[
        bool, typer.Option("--allow-train", help="Score trajectories that the model was trained on, too.")
    ] = False,
) -> None:
    """Score a detector on RedundancyBench."""
    from redclf.commands.evaluate import run_evaluate

    run_evaluate(data, subset, domain, detector, model, json_file, allow_train)


@app.command()
def bench(
    data: Annotated[
        Path | None, typer.Option(metavar="ROOT", help="Folder of the benchmark's release; made runs without one.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the figures to FILE.")] = None,
    model: Annotated[str | None, typer.Option(metavar="DIR", help=_MODEL)] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="Trajectories for throughput and latency.")] = 150,
    pairs: Annotated[int, typer.Option(metavar="N", help="Pairs for the encoder's ratios.")] = 120,
    starts: Annotated[int, typer.Option(metavar="N", help="Cold starts.")] = 5,
    workers: Annotated[int, typer.Option(metavar="N", help="Processes of the second throughput.")] = 2,
) -> None:
    """Measure speed, memory and growth on this machine, and how near the encoder is to its limit."""
    from redclf.bench.run import BenchSettings
    from redclf.commands.bench import run_bench

    for name, value in (("limit", limit), ("pairs", pairs), ("starts", starts), ("workers", workers)):
        if value < 1:
            raise RedclfError(f"--{name}: expected a whole number from 1, got {value}")
    run_bench(data, json_file, BenchSettings(model, limit, pairs, starts, workers))


@app.command()
def agreement(
    reference: Annotated[
        Path, typer.Argument(metavar="A", help="annotation.json, or a release's folder: the reference.")
    ],
    other: Annotated[Path, typer.Argument(metavar="B", help="The annotation that is compared with it.")],
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the figures to FILE.")] = None,
) -> None:
    """Say how far two annotations of the benchmark agree."""
    from redclf.commands.agreement import run_agreement

    run_agreement(reference, other, json_file)


@app.command()
def compare(
    data: Annotated[Path, typer.Option(metavar="ROOT", help="Folder of the benchmark's release.")],
    detectors: Annotated[str, typer.Option(metavar="A,B,...", help=f"Each one of: {_DETECTOR}")],
    subset: Annotated[str | None, typer.Option(help="Only this subset.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only this domain.")] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="Only N trajectories, spread evenly over the data.")
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="DIR", help=_MODEL)] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all figures to FILE.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as Markdown.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all figures as CSV.")] = None,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw the plots (needs the plots extra).")] = None,
    output: Annotated[Path | None, typer.Option(metavar="DIR", help="Write a result file for each detector.")] = None,
    readme: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Renew the part of FILE between the markers of this command.")
    ] = None,
    requests: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Request logs, from which a run goes on; runs/requests if not given."),
    ] = None,
    prices: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Prices of models whose config names none.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write the prompts, estimate tokens and cost, send nothing.")
    ] = False,
    allow_train: Annotated[
        bool, typer.Option("--allow-train", help="Score trajectories that a model was trained on, too.")
    ] = False,
) -> None:
    """Compare detectors on the same trajectories: scores, tokens, time and cost."""
    from redclf.commands.compare import CompareOptions, run_compare

    if limit is not None and limit < 1:
        raise RedclfError(f"--limit: expected a whole number from 1, got {limit}")
    options = CompareOptions(
        data=data,
        detectors=tuple(name for part in detectors.split(",") if (name := part.strip())),
        subset=subset,
        domain=domain,
        limit=limit,
        model=model,
        json_file=json_file,
        markdown=markdown,
        csv=csv,
        plots=plots,
        output=output,
        readme=readme,
        requests=requests,
        prices=prices,
        dry_run=dry_run,
        allow_train=allow_train,
    )
    run_compare(options)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
def train(context: typer.Context) -> None:
    """Train a model: all arguments go to `python -m train.finetune`."""
    from redclf.commands.train import run_train

    code = run_train(context.args)
    if code:
        raise typer.Exit(code)


@app.command()
def models() -> None:
    """List the shipped models."""
    from redclf.commands.listing import show_models

    show_models()


@app.command()
def formats() -> None:
    """List the trace formats that can be read."""
    from redclf.commands.listing import show_formats

    show_formats()


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit: 0, 2 after an error (one line on stderr), 130 when interrupted.

    `REDCLF_DEBUG=1` lets unexpected errors through with their traceback.
    """
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    for stream in (sys.stdout, sys.stderr):
        # A trace may hold what the terminal's encoding lacks.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    try:
        result = app(args=arguments, standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except RedclfError as error:
        return _fail(str(error))
    except (OutputClosed, BrokenPipeError):
        # Nothing more to say, also not when Python flushes at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _interrupted()
    except typer.Abort:
        return _interrupted()
    except Exception as error:
        usage = getattr(error, "format_message", None)
        if usage is not None:
            return _fail(usage()) if usage() else FAILURE
        if os.environ.get("REDCLF_DEBUG"):
            raise
        return _fail(f"unexpected {type(error).__name__}: {error} (REDCLF_DEBUG=1 shows where)")


def _interrupted() -> int:
    print("redclf: interrupted", file=sys.stderr)  # noqa: T201
    return _INTERRUPTED


def _fail(message: str) -> int:
    complain(message)
    return FAILURE
