"""One run from settings to a directory: posed, executed, judged, written down."""

from unpinn.runs._configuration import Configuration as Configuration
from unpinn.runs._configuration import parse_options as parse_options
from unpinn.runs._directory import RunDirectory as RunDirectory
from unpinn.runs._execute import Run as Run
from unpinn.runs._execute import check_method as check_method
from unpinn.runs._execute import execute as execute
from unpinn.runs._execute import execute_or_read as execute_or_read
from unpinn.runs._execute import read_configuration as read_configuration
from unpinn.runs._execute import read_run as read_run
from unpinn.runs._metrics import detected as detected
from unpinn.runs._metrics import metrics_record as metrics_record
from unpinn.runs._metrics import suspicion as suspicion
from unpinn.runs._outputs import write_history as write_history
from unpinn.runs._pictures import write_comparison as write_comparison
from unpinn.runs._pictures import write_pictures as write_pictures
from unpinn.runs._posed import Posed as Posed
from unpinn.runs._posed import pose as pose
from unpinn.runs._reread import problem_of_run as problem_of_run
