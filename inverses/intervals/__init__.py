"""Ancestors among whole datasets, by intervals: one range query over the graph of all runs."""
