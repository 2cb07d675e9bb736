"""`manage.py export_faults`: the acceptance list, with injected faults, on the kind and the table of this installation.

    window    which days are exported: few rows, several shards, over a week old where that can be
    workers   worker processes of its own, which are stopped and killed
    trial     tasks of its own owner, and what they must come to
    criteria  the list itself

The orders database is only read. Tasks, files and worker processes are removed at the end.
"""
