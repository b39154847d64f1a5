"""What attacks the package stands beside the tests, as programs that can be run alone."""

from __future__ import annotations

import sys
from pathlib import Path

# The programs import each other by name, also when they are run from here.
sys.path.insert(0, str(Path(__file__).parent))

# They hold no tests and no examples.
collect_ignore = ["fuzz.py", "kills.py", "mutations.py", "readers.py", "victim.py"]
