"""Sphinx: `tox -e docs`."""

from __future__ import annotations

project = "jmsish"
author = "The jmsish developers"
copyright = "the jmsish developers"  # noqa: A001

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True

html_theme = "furo"
html_title = "jmsish"
html_show_sphinx = False
