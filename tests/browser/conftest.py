from __future__ import annotations

import sys
from pathlib import Path

# The suite imports its files by path; the driver lies beside them.
sys.path.insert(0, str(Path(__file__).parent))
