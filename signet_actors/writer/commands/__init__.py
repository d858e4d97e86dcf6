"""The handlers of the writer's commands, one subject per file: logic only, the statements are in ``store/writes/``."""
