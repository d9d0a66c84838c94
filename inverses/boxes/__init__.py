"""The inverses: one page per family, facing the page of its boxes."""
