"""The nine problems of the paper, one short file each, and a registry."""

from unpinn.benchmarks._benchmark import Benchmark as Benchmark
from unpinn.benchmarks._benchmark import Readings as Readings
from unpinn.benchmarks._judging import Quantity as Quantity
from unpinn.benchmarks._layout import GridRows as GridRows
from unpinn.benchmarks._layout import Patch as Patch
from unpinn.benchmarks._noise import KINDS as KINDS
from unpinn.benchmarks._noise import Noise as Noise
from unpinn.benchmarks._presets import PRESETS as PRESETS
from unpinn.benchmarks._registry import BENCHMARKS as BENCHMARKS
from unpinn.benchmarks._registry import benchmark as benchmark
from unpinn.benchmarks._wake import Wake as Wake
from unpinn.benchmarks._wake import fetch_wake as fetch_wake
from unpinn.benchmarks._wake import load_wake as load_wake
