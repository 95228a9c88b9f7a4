"""Reads shell lines into facts: which programs run, which paths and hosts they touch, or why that is not known."""
