"""Charts and the HTML page (extra `report`)."""
