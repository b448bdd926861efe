"""The CORN paper: its data, its experiments, its printed figures and its tables."""
