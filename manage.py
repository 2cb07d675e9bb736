#!/usr/bin/env python3
"""Django's command line for this project."""

import signal
import sys

from config import env
from exports.errors import SettingInvalid


def main() -> None:
    env.choose_settings("config.settings.web")
    from django.core.management import execute_from_command_line  # needs the choice above

    try:
        try:
            execute_from_command_line(sys.argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Who reads has enough, as `head` does. Every other tool ends by this signal then, and without a word.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.raise_signal(signal.SIGPIPE)
    except SettingInvalid as error:
        # Without settings no command can be loaded that would say so.
        sys.exit(f"FAIL {error}. Set it right: docs/settings.md, docs/architecture.md.")


if __name__ == "__main__":
    main()
