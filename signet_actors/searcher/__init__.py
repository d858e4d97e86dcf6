"""A pool of read-only processes that answer queries from snapshots of the store."""

import os

# Each process answers one query at a time and there is one process per core, so threads of the linear algebra library
# would only compete. numpy reads these variables when it is first imported, which happens after this line.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(_name, "1")
