"""`attnprof run`: measure a sweep, save every row at once, print the result."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from attnprof.cli.options import JsonFlag, print_json, with_problem_options
from attnprof.core.axes import AxisTexts
from attnprof.core.errors import StoreError

if TYPE_CHECKING:
    from attnprof.bench.protocol import Ready
    from attnprof.bench.sweep import Sweep
    from attnprof.core.record import Record, Run
    from attnprof.store.runs import RunWriter

DEFAULT_OUT = Path("runs/latest")
INTERRUPTED = 130  # what shells use for Ctrl-C


@with_problem_options
def run_command(
    texts: AxisTexts,
    sweep_file: Annotated[
        Path | None, typer.Argument(metavar="[SWEEP.toml]", help="Options override it.")
    ] = None,
    variants: Annotated[
        str | None, typer.Option("--variants", help="Names or module:function, joined by commas.")
    ] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda or cuda:1 (cpu).")] = None,
    out: Annotated[Path, typer.Option("--out", help="Run directory.")] = DEFAULT_OUT,
    resume: Annotated[bool, typer.Option("--resume", help="Run only what the directory lacks.")] = False,
    cache: Annotated[str | None, typer.Option("--cache", help="warm or cold (warm; cold on CUDA).")] = None,
    precision: Annotated[
        float | None,
        typer.Option("--precision", help="Stop at this relative half-width of the interval (0.02)."),
    ] = None,
    budget_s: Annotated[
        float | None, typer.Option("--budget-s", help="Sampling seconds per case (2).")
    ] = None,
    timeout_s: Annotated[
        float | None,
        typer.Option("--timeout-s", help="Stop a case that gave no sign of life for so long (180)."),
    ] = None,
    min_rounds: Annotated[
        int | None,
        typer.Option("--min-rounds", help="Fewest samples per case, but for one 10 times over budget (10)."),
    ] = None,
    max_rounds: Annotated[
        int | None, typer.Option("--max-rounds", help="Most samples per case (300).")
    ] = None,
    threads: Annotated[int | None, typer.Option("--threads", help="CPU threads (PyTorch's choice).")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the inputs (0).")] = None,
    json_output: JsonFlag = False,
) -> None:
    """Measure variants on this machine, saving each row as it finishes.

    Example: attnprof run --variants naive,sdpa_default --seq-lens 64:2048:x2 --out runs/first
    """
    from attnprof.bench.gating import refuse_unknown

    conditions = {
        "device": device, "cache": cache, "precision": precision, "budget_s": budget_s, "timeout_s": timeout_s,
        "min_rounds": min_rounds, "max_rounds": max_rounds, "threads": threads, "seed": seed, "variants": variants,
    }  # fmt: skip
    sweep = _sweep(sweep_file, {**_given(texts), **conditions})
    refuse_unknown(sweep)
    try:
        run = _measure(sweep, out, resume)
    except KeyboardInterrupt:
        _say_interrupted(out)
        raise typer.Exit(INTERRUPTED) from None
    _present(run, out, json_output)
    if not all(_good(record) for record in run.records):
        raise typer.Exit(1)


def _given(texts: AxisTexts) -> dict[str, Any]:
    return {key: value for key, value in msgspec.structs.asdict(texts).items() if value is not None}


def _sweep(path: Path | None, values: dict[str, Any]) -> Sweep:
    from attnprof.bench.sweep import sweep_from_toml, sweep_from_values

    if path is not None:
        return sweep_from_toml(path, values)
    return sweep_from_values({key: value for key, value in values.items() if value is not None})


def _good(record: Record) -> bool:
    """Unsupported is an answer; a skipped, failed, wrong or NaN case makes the exit code 1."""
    from attnprof.core.record import Measured, Unsupported, Verdict

    outcome = record.outcome
    if isinstance(outcome, Measured):
        return outcome.accuracy is None or outcome.accuracy.verdict in (Verdict.PASS, Verdict.NOT_APPLICABLE)
    return isinstance(outcome, Unsupported)


def _say_interrupted(out: Path) -> None:
    """What an interrupt leaves: the rows so far, as CSV too."""
    from attnprof.report.export import write_results_csv
    from attnprof.store.runs import RUN_FILE, load_run

    rows = 0
    if (out / RUN_FILE).exists():
        records = load_run(out).records
        write_results_csv(records, out / "results.csv")
        rows = len(records)
    sys.stderr.write(f"interrupted: {rows} rows are in {out}; add --resume to complete them\n")


def _measure(sweep: Sweep, out: Path, resume: bool) -> Run:
    from attnprof.bench import manifest
    from attnprof.bench.supervisor import Worker
    from attnprof.store.ceilings import keep_with_run
    from attnprof.store.runs import RunWriter, load_run

    with Worker(sweep.conditions.device, sweep.conditions.threads) as worker:
        ready = worker.start()
        finished = _finished_keys(out, resume)
        if finished:
            _refuse_other(out, ready, sweep)
        with RunWriter(out) as writer:
            begun = manifest.begin(sweep, ready, ("attnprof", *sys.argv[1:]))
            writer.write_manifest(begun)
            keep_with_run(ready.identity, out)
            _run_with_progress(sweep, worker, writer, finished)
            writer.write_manifest(manifest.finish(begun))
    return load_run(out)


def _finished_keys(out: Path, resume: bool) -> frozenset[str]:
    """Keys already on disk. Raises: StoreError when the directory holds a run and --resume is not given."""
    from attnprof.store.runs import RUN_FILE, load_run

    if not (out / RUN_FILE).exists():
        return frozenset()
    if not resume:
        raise StoreError(
            f"{str(out)!r} already holds a run: add --resume to complete it, or give another --out"
        )
    return frozenset(record.key for record in load_run(out).records)


def _refuse_other(out: Path, ready: Ready, sweep: Sweep) -> None:
    """Another environment is refused; another sweep is said."""
    from attnprof.store.runs import load_run, refuse_other_identity

    stored = load_run(out).manifest
    if stored is not None:
        refuse_other_identity(stored.identity, ready.identity)
        if stored.sweep != msgspec.to_builtins(sweep):
            sys.stderr.write(
                f"note: {out} was begun with another sweep; its rows stay, this one's are added\n"
            )


def _run_with_progress(sweep: Sweep, worker: Any, writer: RunWriter, finished: frozenset[str]) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from attnprof.bench.runner import Position, run_sweep

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=None)

        def show(at: Position) -> None:
            bar.update(
                task, description=f"{at.variant} N={at.asked.kv_len}", completed=at.done, total=at.total
            )

        run_sweep(sweep, worker, writer.append, finished=finished, progress=show)


def _present(run: Run, out: Path, json_output: bool) -> None:
    from rich.console import Console

    from attnprof.report.answers import answers
    from attnprof.report.export import results_json, write_results_csv
    from attnprof.report.metrics import rows
    from attnprof.report.placing import stored_ceilings
    from attnprof.report.terminal import print_run, print_story
    from attnprof.report.words import story

    ceilings, _ = stored_ceilings(run.manifest.identity if run.manifest else None, out)
    write_results_csv(run.records, out / "results.csv", ceilings)
    if json_output:
        print_json(
            {
                "out": str(out),
                "manifest": run.manifest,
                "damaged": run.damaged,
                "rows": results_json(rows(run.records, ceilings)),
            }
        )
        return
    console = Console()
    print_run(run.records, console, ceilings=ceilings)
    made = rows(run.records, ceilings)
    fastest_and_crossover = story(answers(run.records, made), made)[:2]
    print_story(fastest_and_crossover, console)
    sys.stdout.write(f"saved run.jsonl, results.csv and manifest.json in\n{out}\n")
