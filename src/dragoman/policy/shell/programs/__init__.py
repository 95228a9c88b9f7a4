"""What is known about programs: wrappers, options, files, small languages."""
