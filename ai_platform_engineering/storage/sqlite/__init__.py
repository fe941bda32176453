"""SQLite files: opened by one process alone or by several, and their maintenance in a background thread."""
