"""Algorithm 1 once, by one recipe: in rounds, then refined."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from unpinn.adapters._comparison import compare_snapshots, is_finite
from unpinn.adapters._records import Snapshot
from unpinn.adapters._subject import Subject
from unpinn.training import Partition, Pruning, Status
from unpinn.unlearning import Evidence, Recipe, prune
from unpinn.unlearning._partition import settled
from unpinn.unlearning._refinement import refine


@dataclass(frozen=True, eq=False)
class Attempt:
    """Where an attempt stands.

    Arguments:
        now: what the model says.
        partition: by which it was fine-tuned.
        pruning: which neurons were removed.
        compaction: whether they are physically gone.
        status: of the fine-tuning in all rounds.
        rounds: how many fine-tunings it has had.
        stiffened: how often the equations' weight was raised.
        kept: what brings the subject back to it.
    """

    now: Snapshot
    partition: Partition
    pruning: Pruning | None = None
    compaction: str = "nothing was pruned"
    status: Status = field(default_factory=lambda: Status("finished", "nothing was fine-tuned"))
    rounds: int = 0
    stiffened: int = 0
    kept: Any = None


@dataclass(frozen=True, eq=False)
class Trial:
    """How a model is tried by one recipe.

    Arguments:
        subject: the model, as it was given.
        recipe: what to do.
        first: the given model's partition.
        held: whether that one is used throughout.
        seed: for criteria that draw.
        spent: seconds so far, to which this trial's are added.
    """

    subject: Subject
    recipe: Recipe
    first: Partition
    held: bool
    seed: int
    spent: dict[str, float]

    def run(self, before: Snapshot) -> Attempt:
        """From the given model, at which the subject is, to the best of the fine-tuned ones."""
        current = Attempt(before, self.first)
        for number in range(self.recipe.rounds):
            found = self._partition(current)
            if number and settled(current.partition, found):
                break
            if number == 0 and self.recipe.schedule is not None:
                current = self._pruned(current)
            current = self._tuned(current, found, 1.0)
            if not is_finite(current.now, self.subject.values):
                return current
        return self._refined(current)

    def _partition(self, current: Attempt) -> Partition:
        if self.held or current.rounds == 0:
            return self.first
        return self.recipe.rule(current.now.scores(self.recipe.residual_weight))

    def _pruned(self, current: Attempt) -> Attempt:
        begun = perf_counter()
        whole = self.subject.prunable(current.partition.retained)
        smaller, pruning = prune(whole, current.partition, self.recipe.schedule, self.seed)  # type: ignore[arg-type]
        compaction = self.subject.adopt(smaller)
        self.spent["prune"] += perf_counter() - begun
        return replace(current, pruning=pruning, compaction=compaction)

    def _tuned(self, current: Attempt, partition: Partition, stiffness: float) -> Attempt:
        begun = perf_counter()
        later = current.rounds > 0
        status = self.subject.tune(partition, self.recipe, later, stiffness)
        if not current.status.good:
            # What a round has lost is not made good by the next one's ending well.
            both = f"{current.status.reason}; then {status.reason}"
            status = Status(current.status.code, both)
        now, kept = self.subject.look(), self.subject.keep()
        self.spent["tune"] += perf_counter() - begun
        return replace(
            current, now=now, partition=partition, status=status, rounds=current.rounds + 1,
            kept=kept,
        )  # fmt: skip

    def _refined(self, current: Attempt) -> Attempt:
        recipe = self.recipe
        if not self.subject.stiffens():
            # With a weight that nobody heeds, there is nothing to do once the likelihood settles.
            recipe = replace(recipe, firm=float("inf"))

        def step(attempt: Attempt, number: int, factor: float) -> Attempt:
            return self._tuned(attempt, self._partition(attempt), factor)

        def judge(attempt: Attempt, found: Attempt) -> Evidence | None:
            return compare_snapshots(attempt.now, found.now) if found.status.good else None

        best, raised = refine(current, recipe, step, judge, lambda a: a.now.fresh_residual)
        return replace(best, stiffened=raised)
