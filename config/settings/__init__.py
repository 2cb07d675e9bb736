"""Django settings: `web` for the front, `worker` for worker processes, `base` for what both share."""
