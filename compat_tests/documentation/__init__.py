"""The documentation as a site (mkdocs.yml), and the pages that are generated. `make docs` builds it."""
