"""ACTOR: a pool of read-only processes that answer every question from a snapshot of the store."""

import os

# One query at a time per process, one process per core: threads of the linear algebra library would only fight.
# They are counted when numpy is first imported, which is after this line.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(_name, "1")
