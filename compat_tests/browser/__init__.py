"""The web page in Chromium, as its users see it."""
