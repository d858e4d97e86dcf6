"""The handlers of the writer's commands: plain SQL inside the open transaction, one subject per file."""
