"""The sources of skills. A source loads the entries of all its skills at once, and their contents one by one."""
