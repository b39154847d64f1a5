"""The other ways to survive noise, behind one contract, and honest uncertainty for all of them."""

from unpinn.rivals._absolute import LAD as LAD
from unpinn.rivals._bayesian import BAYESIAN as BAYESIAN
from unpinn.rivals._dropout import DROPOUT as DROPOUT
from unpinn.rivals._ensemble import ENSEMBLE as ENSEMBLE
from unpinn.rivals._fine_tune import FINE_TUNE as FINE_TUNE
from unpinn.rivals._heteroscedastic import HETEROSCEDASTIC as HETEROSCEDASTIC
from unpinn.rivals._huber import HUBER as HUBER
from unpinn.rivals._mad import MAD as MAD
from unpinn.rivals._method import METHODS as METHODS
from unpinn.rivals._method import Method as Method
from unpinn.rivals._method import Task as Task
from unpinn.rivals._method import method_named as method_named
from unpinn.rivals._method import register as register
from unpinn.rivals._method import run_method as run_method
from unpinn.rivals._mixture import MIXTURE as MIXTURE
from unpinn.rivals._oracle import ORACLE as ORACLE
from unpinn.rivals._oracle import ORACLE_PRUNED as ORACLE_PRUNED
from unpinn.rivals._pinn import PINN as PINN
from unpinn.rivals._ppinn import PPINN as PPINN
from unpinn.rivals._ppinn import PPINN_PAPER as PPINN_PAPER
from unpinn.rivals._ppinn import PPINN_RANDOM as PPINN_RANDOM
from unpinn.rivals._retrain import RETRAIN as RETRAIN
from unpinn.rivals._student import STUDENT as STUDENT
from unpinn.rivals._trimmed import TRIMMED as TRIMMED
