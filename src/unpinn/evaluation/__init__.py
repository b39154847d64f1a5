"""How good it is: errors, spectra, detection of bad readings, calibration, forgetting.

Everything takes plain arrays, so that the models of any framework can be judged alike.
"""

from unpinn.evaluation._calibration import LEVELS as LEVELS
from unpinn.evaluation._calibration import GaussianQuality as GaussianQuality
from unpinn.evaluation._calibration import IntervalQuality as IntervalQuality
from unpinn.evaluation._calibration import coverage as coverage
from unpinn.evaluation._calibration import coverage_bounds as coverage_bounds
from unpinn.evaluation._calibration import expected_calibration_error as expected_calibration_error
from unpinn.evaluation._calibration import gaussian_coverage as gaussian_coverage
from unpinn.evaluation._calibration import gaussian_interval as gaussian_interval
from unpinn.evaluation._calibration import gaussian_quality as gaussian_quality
from unpinn.evaluation._calibration import interval_quality as interval_quality
from unpinn.evaluation._calibration import interval_score as interval_score
from unpinn.evaluation._calibration import mean_width as mean_width
from unpinn.evaluation._calibration import negative_log_density as negative_log_density
from unpinn.evaluation._calibration import width_against_error as width_against_error
from unpinn.evaluation._detection import Confusion as Confusion
from unpinn.evaluation._detection import Detection as Detection
from unpinn.evaluation._detection import area_under_curve as area_under_curve
from unpinn.evaluation._detection import detection as detection
from unpinn.evaluation._errors import field_errors as field_errors
from unpinn.evaluation._errors import maximum_error as maximum_error
from unpinn.evaluation._errors import mean_shifted as mean_shifted
from unpinn.evaluation._errors import mean_square as mean_square
from unpinn.evaluation._errors import relative_l1 as relative_l1
from unpinn.evaluation._errors import relative_l2 as relative_l2
from unpinn.evaluation._errors import scalar_errors as scalar_errors
from unpinn.evaluation._forgetting import Evidence as Evidence
from unpinn.evaluation._forgetting import ForgetQuality as ForgetQuality
from unpinn.evaluation._forgetting import Membership as Membership
from unpinn.evaluation._forgetting import MisfitDistance as MisfitDistance
from unpinn.evaluation._forgetting import forget_quality as forget_quality
from unpinn.evaluation._forgetting import membership as membership
from unpinn.evaluation._forgetting import misfit_distance as misfit_distance
from unpinn.evaluation._forgetting import prediction_distance as prediction_distance
from unpinn.evaluation._forgetting import unknown_distances as unknown_distances
from unpinn.evaluation._spectra import BANDS as BANDS
from unpinn.evaluation._spectra import SpectralErrors as SpectralErrors
from unpinn.evaluation._spectra import power_spectrum as power_spectrum
from unpinn.evaluation._spectra import spectral_errors as spectral_errors
