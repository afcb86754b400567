"""Processes: settings, wiring, signals, exit codes."""
