"""The command line: each command composes the layers below for one purpose."""
