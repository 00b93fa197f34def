"""The same service on real parts: processes, SQLite or PostgreSQL, HTTP, SIGKILL."""
