"""The boxes: one page per family."""
