"""The cylinder wake, simulated again from rest by spectral elements, and its checks."""

from unpinn.benchmarks.wake_generator._checks import Check as Check
from unpinn.benchmarks.wake_generator._checks import check_equations as check_equations
from unpinn.benchmarks.wake_generator._checks import check_figures as check_figures
from unpinn.benchmarks.wake_generator._checks import check_wake as check_wake
from unpinn.benchmarks.wake_generator._harmonics import SimulatedWake as SimulatedWake
from unpinn.benchmarks.wake_generator._harmonics import aligned as aligned
from unpinn.benchmarks.wake_generator._harmonics import extract_harmonics as extract_harmonics
from unpinn.benchmarks.wake_generator._harmonics import shifted as shifted
from unpinn.benchmarks.wake_generator._harmonics import write_wake as write_wake
from unpinn.benchmarks.wake_generator._simulation import Recording as Recording
from unpinn.benchmarks.wake_generator._simulation import SimulationSettings as SimulationSettings
from unpinn.benchmarks.wake_generator._simulation import simulate as simulate
