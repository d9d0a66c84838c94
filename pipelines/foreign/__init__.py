"""Run graphs of other programs, read and written as files."""
