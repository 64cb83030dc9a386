"""Closed forms of what each method does: a `Cost` with its term tables, from a problem and tile sizes."""
