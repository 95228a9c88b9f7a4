"""From text to the parts of a line, twice, and whether both agree."""
