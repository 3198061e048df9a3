"""numpy, and the kernels that compare vectors, loaded so that linear algebra stays on one core.

With a thread a core, which is how it comes, the small products here took four to eight times as long on a busy
machine (0.9 s against 0.1 s of processor time for 5,200 notes), and every process that asks one question would start
the threads.
"""

import os

_NAME = "OPENBLAS_NUM_THREADS"
_ours = _NAME not in os.environ
if _ours:
    os.environ[_NAME] = "1"
try:
    import numkong  # loads numpy
    import numpy as np
finally:
    if _ours:
        del os.environ[_NAME]

__all__ = ["np", "numkong"]
