"""The page: a small server that keeps every visitor's game, thinks for them, and shows runs as they learn."""
