"""Settings of editors that start Dragoman as their agent: shown, written, and taken out again.

`catalog.EDITORS` has every editor by its name. An editor whose settings are JSON gets one entry there
(`json_editor.py`); one that is configured by code gets a file of our own (`code_files.py`); one whose settings a program
cannot change safely is only explained (`by_hand.py`).
"""
