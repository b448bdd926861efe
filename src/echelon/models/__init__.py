"""Everything that is fitted and gives curves: the engines, and the estimators around them."""
