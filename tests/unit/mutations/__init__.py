"""The catalogue of mutations, and the runner that puts them in."""
