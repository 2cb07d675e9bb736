#!/usr/bin/env python3
"""Django's command line for this project."""

import sys

from config import env


def main() -> None:
    env.choose_settings("config.settings.web")
    from django.core.management import execute_from_command_line  # needs the choice above

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
