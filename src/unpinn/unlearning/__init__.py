"""The paper's Algorithm 1: score, partition, importance, pruning, fine-tuning."""

from unpinn.unlearning._evidence import Evidence as Evidence
from unpinn.unlearning._evidence import evidence_of as evidence_of
from unpinn.unlearning._importance import CRITERIA as CRITERIA
from unpinn.unlearning._importance import Criterion as Criterion
from unpinn.unlearning._importance import LayerView as LayerView
from unpinn.unlearning._importance import criterion as criterion
from unpinn.unlearning._mixture import MixtureFit as MixtureFit
from unpinn.unlearning._mixture import fit_mixture as fit_mixture
from unpinn.unlearning._mixture import log_likelihood as log_likelihood
from unpinn.unlearning._mixture import posterior_of as posterior_of
from unpinn.unlearning._native import NativePrunable as NativePrunable
from unpinn.unlearning._native import compacted as compacted
from unpinn.unlearning._native import scores_of as scores_of
from unpinn.unlearning._partition import ByMixture as ByMixture
from unpinn.unlearning._partition import ByShare as ByShare
from unpinn.unlearning._partition import ByThreshold as ByThreshold
from unpinn.unlearning._partition import Rule as Rule
from unpinn.unlearning._pruning import Prunable as Prunable
from unpinn.unlearning._pruning import Schedule as Schedule
from unpinn.unlearning._pruning import prune as prune
from unpinn.unlearning._recipe import RECIPES as RECIPES
from unpinn.unlearning._recipe import Recipe as Recipe
from unpinn.unlearning._recipe import default_recipe as default_recipe
from unpinn.unlearning._recipe import paper_recipe as paper_recipe
from unpinn.unlearning._scores import Scores as Scores
from unpinn.unlearning._unlearn import unlearn as unlearn
