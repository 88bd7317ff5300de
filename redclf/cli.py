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
) -> None:
    """Find the redundant steps of recorded runs."""
    from redclf.commands.detect import DetectOptions, run_detect

    if threshold is not None and not 0 <= threshold <= 1:
        raise RedclfError(f"--threshold: expected a number from 0 to 1, got {threshold}")
    if top_k is not None and top_k < 1:
        raise RedclfError(f"--top-k: expected a whole number from 1, got {top_k}")
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
    )
    if run_detect(options):
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
