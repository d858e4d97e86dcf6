"""The hook command ``signet-hook``: it carries what a harness reports to the daemon, and the daemon's answer back.

A harness starts it at each prompt and waits for it, so it imports as little as possible, answers within a hard time
limit, and always exits with 0. Before anything else is imported, it takes the working directory, which belongs to the
user's project, out of the import path.
"""

from signet_actors.runtime.processes.import_path import leave_working_directory

leave_working_directory()
