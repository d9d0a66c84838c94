"""The tests, mirroring the packages; `python -m tests` runs them and every check of the code."""
