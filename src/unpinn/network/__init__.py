"""What stands for the fields: architectures, masks, activations, Taylor derivatives."""

from unpinn.network._activations import ACTIVATIONS as ACTIVATIONS
from unpinn.network._activations import Activation as Activation
from unpinn.network._activations import activation as activation
from unpinn.network._architectures import ARCHITECTURES as ARCHITECTURES
from unpinn.network._architectures import MLP as MLP
from unpinn.network._architectures import FourierMLP as FourierMLP
from unpinn.network._architectures import ModifiedMLP as ModifiedMLP
from unpinn.network._architectures import ResidualMLP as ResidualMLP
from unpinn.network._fallback import propagate_by_jvp as propagate_by_jvp
from unpinn.network._fixed import Fixed as Fixed
from unpinn.network._fixed import split as split
from unpinn.network._fixed import trainable as trainable
from unpinn.network._model import Architecture as Architecture
from unpinn.network._model import Layout as Layout
from unpinn.network._model import Model as Model
from unpinn.network._model import make_layout as make_layout
from unpinn.network._model import make_model as make_model
from unpinn.network._network import Hook as Hook
from unpinn.network._network import Linear as Linear
from unpinn.network._network import Network as Network
from unpinn.network._plan import Plan as Plan
from unpinn.network._plan import make_plan as make_plan
from unpinn.network._series import Series as Series
