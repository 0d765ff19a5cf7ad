"""Properties that hold for any sequence of steps."""
