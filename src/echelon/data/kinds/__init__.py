"""Kinds of columns: what a number, a category, a text or an image is, one file a kind."""
