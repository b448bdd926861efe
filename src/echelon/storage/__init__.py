"""Files of every kind: how they are written wholly or not at all."""
