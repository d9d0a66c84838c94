"""How fast Whence is beside its peers, measured side by side: `python -m tests.speed`."""
