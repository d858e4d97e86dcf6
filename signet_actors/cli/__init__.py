"""The command line. Before anything else is imported, it takes the working directory out of the import path."""

from signet_actors.runtime.processes.import_path import leave_working_directory

leave_working_directory()
