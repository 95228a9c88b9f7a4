"""Sections of the configuration, one file each; `config/model.py` puts them together."""
