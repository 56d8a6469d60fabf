"""Reverse mode: shadows, a tape, and the sweep that runs it backward."""
