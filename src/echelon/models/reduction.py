"""The model that is any classifier of scikit-learn, trained on the binary tasks of a method."""
