"""Models: everything that is fitted and gives curves; see :mod:`echelon.models.base`."""
