"""The web server: threads, since a request waits for Redis, streams a file or waits for a task.

A thread is held for as long as a download takes.
"""

from config import env
from exports.telemetry import logs, spans

_environment = env.environment()

wsgi_app = "config.wsgi"
bind = _environment.web_bind
worker_class = "gthread"
workers = 1
threads = _environment.web_threads
# A worker that gives no sign of life for this long is replaced; a long download gives one.
timeout = 60
graceful_timeout = 25
keepalive = 20
# Above the API's own limit of 8 KB of body, which is not counted here.
limit_request_line = 4094
limit_request_fields = 50
# Log lines are the application's; a request line would hold the signature of a download link.
accesslog = None
logconfig_dict = logs.configuration(as_json=_environment.log_json, level=_environment.log_level)
# No second way in, and no file in the home of whoever runs it.
control_socket_disable = True


def worker_exit(_server: object, _worker: object) -> None:
    """Called by gunicorn in the worker that leaves."""
    spans.stop()
