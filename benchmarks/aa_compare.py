"""How often `attnprof compare` is right: A/A pairs, and pairs with a slow-down that is known.

Two kinds of samples. Simulated: seven variants on a machine with independent noise, heavy tails, drift inside
a run, another level in each run, and bursts of other work. Real: runs on this machine, one after the other.
An A/A pair is right when no case of the whole comparison gets a verdict; only one variant is slowed down.

    python benchmarks/aa_compare.py [--pairs 100] [--real 20] [--out docs/results/aa.md]
"""

from __future__ import annotations

import argparse
import math
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from attnprof.core.mask import Causal
from attnprof.core.problem import Problem
from attnprof.core.record import Identity, Manifest, Measured, Record, Run, Weather
from attnprof.report.compare import CaseVerdict, Comparison, compare
from attnprof.store.runs import load_run

VARIANTS = ("naive", "sdpa_default", "sdpa_flash", "sdpa_math", "flex", "sliding_w128", "gqa_4kv")
LENGTHS = (64, 256, 1024, 2048)
VICTIM = "sdpa_flash"
REAL_VARIANTS = (
    "naive", "sdpa_default", "sdpa_flash", "sdpa_math", "sliding_w128", "gqa_4kv", "gqa_native",
)  # fmt: skip
SLOW_DOWN = 1.10
ROUNDS = 24


class Machine(NamedTuple):
    """A noise model: `common` moves every variant of a round alike, `own` is a sample's own factor."""

    name: str
    common: Callable[[random.Random, int], list[float]]
    own: Callable[[random.Random], float]


def quiet(_: random.Random, rounds: int) -> list[float]:
    """Nothing moves."""
    return [0.0] * rounds


def drifting(rng: random.Random, rounds: int) -> list[float]:
    """A random walk of 1.5% a round, from a level that differs by 5% between runs."""
    level, levels = rng.gauss(0, 0.05), []
    for _ in range(rounds):
        level += rng.gauss(0, 0.015)
        levels.append(level)
    return levels


def other_level(rng: random.Random, rounds: int) -> list[float]:
    """Each run at its own level (standard deviation 8%): another clock, another neighbour."""
    return [rng.gauss(0, 0.08)] * rounds


def bursts(rng: random.Random, rounds: int) -> list[float]:
    """Other work takes 60% more for a sixth of the rounds, in one piece."""
    start = rng.randrange(rounds)
    return [math.log(1.6) if start <= number < start + rounds // 6 else 0.0 for number in range(rounds)]


def normal(rng: random.Random) -> float:
    """3% of independent noise."""
    return rng.gauss(0, 0.03)


def heavy(rng: random.Random) -> float:
    """2% of noise, and one sample in ten up to twice as slow."""
    return abs(rng.gauss(0, 0.02)) + (rng.expovariate(4) if rng.random() < 0.1 else 0.0)


MACHINES = (
    Machine("independent noise 3%", quiet, normal),
    Machine("heavy tails", quiet, heavy),
    Machine("drift 1.5% a round", drifting, normal),
    Machine("another level each run (8%)", other_level, normal),
    Machine("bursts of other work", bursts, heavy),
)


def simulated_run(rng: random.Random, machine: Machine, slow_down: float, variants: Sequence[str]) -> Run:
    """A run of `variants` over four lengths on a simulated machine."""
    records = []
    for length in LENGTHS:
        common = machine.common(rng, ROUNDS)
        for place, name in enumerate(variants):
            base = 1e-6 * length * (1 + place) * (slow_down if name == VICTIM else 1.0)
            samples = [base * math.exp(move + machine.own(rng)) for move in common]
            records.append(record(name, length, samples))
    return Run(manifest=manifest(), records=tuple(records))


def record(name: str, length: int, samples: Sequence[float]) -> Record:
    """A measured record with one sample a round."""
    asked = Problem(q_heads=12, q_len=length, head_dim=64, mask=Causal())
    done = Measured(
        samples_s=tuple(samples), rounds=tuple(range(len(samples))), calls_per_sample=1, warmup_calls=1,
        first_call_s=1e-3, prepare_s=0.0, floor_s=1e-7, stopped="simulated",
    )  # fmt: skip
    return Record(variant=name, asked=asked, problem=asked, device="cpu", outcome=done)


def manifest() -> Manifest:
    """One machine for all simulated runs."""
    identity = Identity(device="cpu", device_name="simulated", threads=2, versions={})
    return Manifest(attnprof_version="0", command=(), sweep={}, seed=0, identity=identity, weather=Weather())


# --- real runs ----------------------------------------------------------------------------------------------


def real_run() -> Run:
    """Seven variants at two lengths on this machine, 24 rounds each, one thread."""
    options = ["--variants", ",".join(REAL_VARIANTS), "--seq-lens", "128,256", "--threads", "1"]
    options += ["--budget-s", "10", "--min-rounds", str(ROUNDS), "--max-rounds", str(ROUNDS)]
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "attnprof", "run", *options]
        subprocess.run([*command, "--out", directory], check=True, stdout=subprocess.DEVNULL)
        return load_run(directory)


def slowed(run: Run, factor: float) -> Run:
    """The same run with every sample of one variant `factor` times as long."""
    return msgspec.structs.replace(run, records=tuple(_slowed(r, factor) for r in run.records))


def _slowed(record: Record, factor: float) -> Record:
    done = record.measured
    if record.variant != VICTIM or done is None:
        return record
    outcome = msgspec.structs.replace(done, samples_s=tuple(s * factor for s in done.samples_s))
    return msgspec.structs.replace(record, outcome=outcome)


# --- counting -----------------------------------------------------------------------------------------------


class Score(NamedTuple):
    """Counts over pairs of one machine."""

    name: str
    pairs: int
    clean_runs: int  # A/A pairs in which no case got a verdict
    cases: int
    clean_cases: int
    found: int  # A/B cases of the slowed variant that were called slower
    searched: int
    blamed: int  # A/B cases of other variants that got a verdict
    others: int


def score(name: str, pairs: Sequence[tuple[Run, Run]], slow_pairs: Sequence[tuple[Run, Run]]) -> Score:
    """Judge A/A pairs and pairs whose B holds the slow-down."""
    aa = [compare(a, b) for a, b in pairs]
    ab = [compare(a, b) for a, b in slow_pairs]
    victims = [case for result in ab for case in result.cases if case.variant == VICTIM]
    others = [case for result in ab for case in result.cases if case.variant != VICTIM]
    return Score(
        name=name, pairs=len(aa), clean_runs=sum(_clean(result) for result in aa),
        cases=sum(len(result.cases) for result in aa), clean_cases=sum(r.count(CaseVerdict.SAME) for r in aa),
        found=sum(case.verdict is CaseVerdict.SLOWER for case in victims), searched=len(victims),
        blamed=sum(case.verdict is not CaseVerdict.SAME for case in others), others=len(others),
    )  # fmt: skip


def _clean(result: Comparison) -> bool:
    return result.count(CaseVerdict.SAME) == len(result.cases)


def simulated_scores(pairs: int, variants: Sequence[str], label: str) -> list[Score]:
    """A score per machine."""
    rng = random.Random(0)

    def many(machine: Machine, slow: float) -> list[tuple[Run, Run]]:
        return [
            (simulated_run(rng, machine, 1.0, variants), simulated_run(rng, machine, slow, variants))
            for _ in range(pairs)
        ]

    return [
        score(f"{machine.name}{label}", many(machine, 1.0), many(machine, SLOW_DOWN)) for machine in MACHINES
    ]


def real_score(runs: int) -> Score:
    """Every run of this machine against the next."""
    made = [real_run() for _ in range(runs + 1)]
    pairs = list(pairwise(made))
    return score("this machine, runs in turn", pairs, [(a, slowed(b, SLOW_DOWN)) for a, b in pairs])


def table(scores: Sequence[Score]) -> str:
    """Markdown."""
    names = ("samples", "A/A: clean pairs", "A/A: clean cases", "10% slow-down found", "others blamed")
    lines = [f"| {' | '.join(names)} |", "|---|---:|---:|---:|---:|"]
    for s in scores:
        shares = (
            (s.clean_runs, s.pairs),
            (s.clean_cases, s.cases),
            (s.found, s.searched),
            (s.blamed, s.others),
        )
        lines.append(f"| {s.name} | {' | '.join(f'{part} of {whole}' for part, whole in shares)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table; write the page when --out is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--real", type=int, default=20, help="pairs of real runs")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    scores = simulated_scores(given.pairs, VARIANTS, "")
    scores += simulated_scores(given.pairs, (VICTIM,), ", one variant alone")
    if given.real:
        scores.append(real_score(given.real))
    text = table(scores)
    print(text)
    if given.out:
        given.out.write_text(f"{PAGE}\n{text}", encoding="utf-8")


PAGE = """# How often `attnprof compare` is right

Made by `python benchmarks/aa_compare.py --out docs/results/aa.md`.

An A/A pair is two runs of one build: every verdict in it is false; a clean pair has none. In the other pairs
all samples of one variant, `sdpa_flash`, are 10% longer in B. Threshold 5%; a verdict needs the threshold and
a 95% interval for all cases together. Simulated runs have seven variants, four lengths and 24 rounds; real
ones seven variants, two lengths, 24 rounds and one thread. On a machine that is overloaded while they run, a
slow-down of 10% cannot be found, and none is claimed.
"one variant alone" has no other variants beside it, so what the machine does cannot be taken out.
"""

if __name__ == "__main__":
    main()
