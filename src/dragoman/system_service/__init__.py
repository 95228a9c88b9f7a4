"""`dragoman serve` as a service of the user: a unit of systemd, or an agent of launchd on macOS."""
