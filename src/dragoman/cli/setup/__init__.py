"""Commands that set up other programs: editors, and the service manager of the system."""
