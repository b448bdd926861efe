"""Networks: from raw cells to logits, loss and curve, and what one is rebuilt from."""
