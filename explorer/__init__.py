"""Asking and seeing: the command line and, later, the page."""
