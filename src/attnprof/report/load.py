"""`attnprof.load(DIR)`: a run in Python, as records, rows, or a data frame; a table in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnprof.core.ceilings import Ceilings
from attnprof.core.errors import UsageError
from attnprof.core.record import Manifest, Record, Run
from attnprof.report.answers import Answer, answers
from attnprof.report.export import frame
from attnprof.report.metrics import rows
from attnprof.report.placing import stored_ceilings
from attnprof.report.row import Row
from attnprof.report.table import problem_table

if TYPE_CHECKING:
    import pandas as pd

    from attnprof.store.traces import StoredTrace

MAX_SHOWN = 20


@dataclass(frozen=True)
class Results:
    """A run that was read: its records as stored, and what follows from them."""

    run: Run
    traces: tuple[StoredTrace, ...] = ()
    damaged_traces: tuple[str, ...] = ()
    directory: Path | None = None

    @property
    def records(self) -> tuple[Record, ...]:
        """The stored facts."""
        return self.run.records

    @property
    def manifest(self) -> Manifest | None:
        """How the run came to be; None when manifest.json could not be read."""
        return self.run.manifest

    @property
    def damaged(self) -> tuple[str, ...]:
        """What could not be read."""
        return (*self.run.damaged, *self.damaged_traces)

    @cached_property
    def ceilings(self) -> tuple[Ceilings | None, str]:
        """The ceilings measured on the run's device, or None and why."""
        return stored_ceilings(self.manifest.identity if self.manifest else None, self.directory)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """One row per record, with the columns of results.csv."""
        return rows(self.records, self.ceilings[0])

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """The rows of each asked problem, ranked."""
        return answers(self.records, self.rows)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas frame in tidy form."""
        return frame(self.rows)

    def to_polars(self) -> Any:
        """The rows as a polars frame. Raises: UsageError when polars is not installed."""
        try:
            import polars
        except ImportError:
            raise UsageError("polars is not installed: pip install polars, or use to_pandas()") from None
        return polars.from_pandas(self.to_pandas())

    def _repr_html_(self) -> str:
        """Ranked tables for a notebook; every text is escaped."""
        from attnprof.report.html import template

        tables = [problem_table(answer) for answer in self.answers[:MAX_SHOWN]]
        left_out = max(len(self.answers) - MAX_SHOWN, 0)
        return template("notebook.html.jinja").render(tables=tables, left_out=left_out, damaged=self.damaged)


def load(directory: Path | str) -> Results:
    """Read a run directory written by `attnprof run`.

    Raises: StoreError when there is no run in it.
    """
    from attnprof.store.runs import load_run
    from attnprof.store.traces import load_traces

    run = load_run(directory)
    traces, damaged = load_traces(Path(directory))
    return Results(run=run, traces=traces, damaged_traces=damaged, directory=Path(directory))
