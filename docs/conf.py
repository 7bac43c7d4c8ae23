"""How Sphinx makes the documentation: `make docs`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "coband"
author = "the coband authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click", "reference_pages"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "coband"
html_last_updated_fmt = None
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
nitpicky = False
smartquotes = False  # quotes in texts are often code
html_show_search_summary = False  # browsers refuse to fetch pages for summaries where these are files
