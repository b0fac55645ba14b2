"""Drivers of Python clients; they run on Python 3.6 and later, with nothing of ours but this folder."""
