"""A program, its provider and its machine with a marker in every part that could hold something private."""
