"""The rules of the house, as tests; `figures.py` prints its measures."""
