"""The programs that run agents, and the settings files by which they call our hooks.

``registry.py`` lists them. A harness plans changes of files (``settings_file.py``); the command carries them out.
"""
