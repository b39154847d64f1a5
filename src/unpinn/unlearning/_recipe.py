"""What a run of the unlearning does at each of its three parts: plain configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from unpinn._errors import UserError
from unpinn.training import Adam, Lbfgs, Stage
from unpinn.unlearning._partition import ByMixture, ByShare, Rule
from unpinn.unlearning._pruning import Schedule

# Of the pruning steps, the share that is tried where all of them did harm.
_FEWER = 0.3


@dataclass(frozen=True)
class Recipe:
    """Partition, pruning, fine-tuning, and what to do with the result.

    Arguments:
        name: "paper", "default", or one's own.
        rule: how the threshold is chosen.
        schedule: how neurons are removed; None prunes nothing (the paper's FT).
        stages: the fine-tuning after pruning.
        later: the fine-tuning of further rounds, which start from a trained network; the same
            unless told.
        weights: of its loss terms.
        tolerance: the relative residual at which the equations weigh as much as the noise; sets
            the equations' weight in fine-tuning from the estimated noise of good readings,
            (sigma / tolerance)^2 in the readings' units, within 1e-4 and 1. None keeps `weights`.
        residual_weight: of the residual in the composite score.
        rounds: how often partition and fine-tuning are repeated at most; the network is pruned
            in the first.
        stiffening: by how much the equations' weight grows from one to the next of the further
            fine-tunings that follow once the partition has settled, while the readings agree no
            less; None has none of them.
        firm: the relative residual below which no stiffening is needed.
        accept: whether a result has to be no worse by the evidence: fine-tuning alone than the
            baseline, and the pruned network than the fine-tuned one. What is worse gives way.
    """

    name: str
    rule: Rule
    schedule: Schedule | None
    stages: tuple[Stage, ...]
    later: tuple[Stage, ...] | None = None
    weights: dict[str, float] = field(default_factory=dict)
    tolerance: float | None = None
    residual_weight: float = 0.001
    rounds: int = 1
    stiffening: float | None = None
    firm: float = 1e-3
    accept: bool = False

    def __post_init__(self):
        if self.rounds < 1:
            raise UserError(f"unlearning needs one round or more, not {self.rounds}")
        if self.tolerance is not None and not self.tolerance > 0:
            raise UserError(f"the tolerance must be above zero, not {self.tolerance}")
        if self.stiffening is not None and not self.stiffening > 1:
            raise UserError(f"stiffening must be a factor above one, not {self.stiffening}")

    def scaled_to(self, fraction: float) -> Recipe:
        """With a fraction of the fine-tuning's length."""
        shorter = lambda stages: tuple(stage.scaled_to(fraction) for stage in stages)  # noqa: E731
        later = None if self.later is None else shorter(self.later)
        return replace(self, stages=shorter(self.stages), later=later)

    def once(self) -> Recipe:
        """With a single round."""
        return replace(self, rounds=1)

    def attempts(self) -> Iterator[Recipe]:
        """What is tried in turn until neurons have been removed without harm.

        Where harm counts, fine-tuning alone comes first, since it is what pruning has to match;
        then this recipe, then fewer neurons removed.

        >>> [a.schedule and a.schedule.steps for a in default_recipe().attempts()]
        [None, 20, 6]
        """
        if not self.accept or self.schedule is None:
            yield self
            return
        yield replace(self, schedule=None)
        yield self
        fewer = round(_FEWER * self.schedule.steps)
        if fewer:
            yield self.changed(steps=fewer)

    def without_pruning(self) -> Recipe:
        """The paper's FT: the same, but no neuron is removed."""
        return replace(self, name=f"{self.name}, unpruned", schedule=None)

    def changed(self, **options) -> Recipe:
        """With parts of the schedule changed, as in `recipe.changed(criterion="random")`."""
        if self.schedule is None:
            raise UserError("this recipe prunes nothing, so its schedule cannot be changed")
        return replace(self, schedule=replace(self.schedule, **options))


def paper_recipe(
    assimilation: bool, share: float = 0.5, physics: float = 0.005,
    schedule: Schedule | None = None,
) -> Recipe:  # fmt: skip
    """The paper's Algorithm 1 with its printed settings.

    Arguments:
        assimilation: data assimilation fine-tunes with L-BFGS after Adam.
        share: of readings retained.
        physics: the equations' weight while fine-tuning.
        schedule: 5 % of what remains, 20 times, in all layers, by the printed score, unless told.
    """
    stages: tuple[Stage, ...] = (Adam(epochs=2_000, rate=1e-3),)
    if assimilation:
        stages += (Lbfgs(iterations=500),)
    plain = Schedule(fold=False, constants=False, guard=False, epsilon=1e-8, least=0)
    weights = {"equations": physics}
    return Recipe("paper", ByShare(share), schedule or plain, stages, weights=weights)


def default_recipe() -> Recipe:
    """The recipe that needs no hand-set number.

    Readings are weighed by the posterior of a mixture that is fitted anew in every round; the
    equations weigh what the noise of good readings calls for; rounds end when the weights settle.
    L-BFGS ends every round: the small network fits to the floor of its loss, which Adam does not
    reach in many times the epochs. Once the weights have settled, the equations' weight is raised
    step by step: the true fields satisfy them exactly, and started from a network that is already
    close, L-BFGS can follow.
    """
    last = Lbfgs(iterations=300)
    first = (Adam(epochs=600, rate=2e-3, schedule="cosine"), last)
    return Recipe(
        "default", ByMixture(), Schedule(), first, (last,), tolerance=0.05, rounds=6,
        stiffening=5.0, accept=True,
    )  # fmt: skip


RECIPES: dict[str, Callable[..., Recipe]] = {"paper": paper_recipe, "default": default_recipe}
