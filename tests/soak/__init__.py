"""`make soak MINUTES=n`: real processes under random loads and random faults, from a printed seed that replays.

__main__   the arguments, the tests of the marker `soak`, a run for each database, the verdict
modes      one figure alone: which tests, or which faults and how many
schedule   what happens when, out of the seed alone
world      servers behind proxies, web and workers, and what can be done to them
ledger     every task that was asked for, and what must be true of it
flatness   what is left at the end: memory, file descriptors, Redis, spool, store
"""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
# The modules below need the models of the product.
django.setup()
