"""The commands: each composes the layers below for one purpose."""
