"""A saved model behind an address: requests in, predictions and reasons out (extra `serve`)."""
