"""Train, unlearn and judge the examples over several seeds; prints a table in Markdown.

    python examples/deepxde/measure.py diffusion elliptic lorenz --seeds 42 43 44

Beside the model as it was trained stands the same model trained on for as long as the unlearning
takes, so that more training is not mistaken for better readings.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from time import process_time

import numpy as np
from noise import Case

import deepxde as dde  # isort: skip
import torch

from unpinn.adapters import Unlearned
from unpinn.adapters.deepxde import unlearn
from unpinn.evaluation import detection
from unpinn.unlearning import default_recipe

EXAMPLES = ("diffusion", "elliptic", "lorenz", "wake")
WAYS = ("own", "trained_on", "unlearned")


@dataclass(frozen=True)
class Outcome:
    """One seed: errors of the model's own, of it trained on, and after unlearning."""

    own: dict[str, float]
    trained_on: dict[str, float]
    unlearned: dict[str, float]
    result: Unlearned
    found: float
    iterations: int
    seconds: float

    def lines(self) -> list[str]:
        """For people."""
        out = [
            f"{name}: own {self.own[name]:.4f}, trained on {self.trained_on[name]:.4f}, "
            f"unlearned {self.unlearned[name]:.4f}"
            for name in self.own
        ]
        return [
            *out,
            f"{self.result.partition.rule}; bad readings found with AUC {self.found:.3f}",
            *(f"tried: {told}" for told in self.result.tried),
            f"{self.result.compaction}; {self.result.status.reason}",
            f"{self.iterations} iterations of unlearning; {self.seconds:.0f} s of one core",
        ]


def run(build: Callable[[int], Case], seed: int, scale: float = 1.0, rounds: int = 4) -> Outcome:
    """Train, unlearn, and train an equal model on for as many iterations as that took."""
    torch.set_num_threads(1)
    began = process_time()
    case = build(seed)
    iterations = max(1, round(scale * case.iterations))
    more = max(1, iterations // (2 * rounds))
    train(case, iterations)
    own, before = case.errors(), state(case)
    recipe = replace(default_recipe(), rounds=rounds)
    counter = Counter()
    result = unlearn(
        case.model, recipe, unknowns=case.unknowns, iterations=more, seed=seed, callbacks=[counter]
    )
    unlearned = case.errors()
    other = build(seed)
    put_back(other, before)
    train(other, counter.epochs)
    found = detection(result.partition.score, case.is_bad).auc
    seconds = process_time() - began
    return Outcome(own, other.errors(), unlearned, result, found, counter.epochs, seconds)


class Counter(dde.callbacks.Callback):
    """Counts iterations, those of attempts that were given up too."""

    def __init__(self):
        super().__init__()
        self.epochs = 0

    def on_epoch_end(self):
        self.epochs += 1


def train(case: Case, iterations: int) -> None:
    """Quietly."""
    case.model.train(iterations=iterations, display_every=iterations, verbose=0)


def state(case: Case) -> list:
    """Everything that training changes."""
    numbers = {name: float(v.detach()) for name, v in case.unknowns.items()}
    return copy.deepcopy([case.model.net.state_dict(), case.model.opt.state_dict(), numbers])


def put_back(case: Case, before: list) -> None:
    """Undo the training since `state`."""
    weights, optimiser, numbers = before
    case.model.net.load_state_dict(weights)
    case.model.opt.load_state_dict(optimiser)
    with torch.no_grad():
        for name, value in numbers.items():
            case.unknowns[name].fill_(value)


def table(name: str, outcomes: list[Outcome]) -> list[str]:
    """One row for each thing that is sought: means over the seeds, and each seed's own."""
    rows = []
    for what in outcomes[0].own:
        columns = [[getattr(o, way)[what] for o in outcomes] for way in WAYS]
        told = [f"{np.mean(c):.4f} ({', '.join(f'{v:.4f}' for v in c)})" for c in columns]
        auc = np.mean([o.found for o in outcomes])
        rows.append(f"| {name} | {what} | {' | '.join(told)} | {auc:.2f} |")
    return rows


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("examples", nargs="+", choices=EXAMPLES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[42, 43, 44])
    parser.add_argument("--scale", type=float, default=1.0, help="of the iterations")
    parser.add_argument("--rounds", type=int, default=4, help="partition and fine-tuning, at most")
    chosen = parser.parse_args()
    lines = [
        "| example | sought | own | trained on | unlearned | AUC |",
        "|---|---|---|---|---|---|",
    ]
    for name in chosen.examples:
        outcomes = []
        for seed in chosen.seeds:
            build = import_module(name).build
            outcomes.append(run(build, seed, chosen.scale, chosen.rounds))
            print(f"{name}, seed {seed}:", *outcomes[-1].lines(), sep="\n  ", flush=True)
        lines += table(name, outcomes)
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
