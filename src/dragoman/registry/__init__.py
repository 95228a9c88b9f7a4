"""Agents from a registry: what there is, fetched, checked, unpacked and installed into the state folder."""
