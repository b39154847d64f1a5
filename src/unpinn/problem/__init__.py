"""What is asked: coordinates, fields, unknowns, equations, conditions, observations, sampling."""

from unpinn.problem._conditions import Condition as Condition
from unpinn.problem._derivatives import Derivative as Derivative
from unpinn.problem._derivatives import DerivativeError as DerivativeError
from unpinn.problem._derivatives import FieldValue as FieldValue
from unpinn.problem._expression import Expression as Expression
from unpinn.problem._expression import Symbols as Symbols
from unpinn.problem._measurement import Measurement as Measurement
from unpinn.problem._observations import Observations as Observations
from unpinn.problem._observations import observe as observe
from unpinn.problem._problem import Problem as Problem
from unpinn.problem._sampling import Grid as Grid
from unpinn.problem._sampling import Points as Points
from unpinn.problem._sampling import Random as Random
from unpinn.problem._sampling import Sampler as Sampler
from unpinn.problem._sampling import Sobol as Sobol
from unpinn.problem._unknowns import Field as Field
from unpinn.problem._unknowns import Scalar as Scalar
