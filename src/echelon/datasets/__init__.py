"""Data that echelon generates itself, with the best possible predictor known, and the digits.

What users call stands in :mod:`echelon.data`.
"""
