"""Answers that a person had us remember: their patterns, where and until when they hold, and the file they are in."""
