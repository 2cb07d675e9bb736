"""The demo: the whole product on one machine, real servers included, below one folder.

place.py        what lies where in the folder, and the lock that keeps it to one demo
processes.py    the supervisor: starts, restarts, stops
servers.py      Valkey and PostgreSQL out of their wheels
orders.py       the sample orders, made once
environment.py  the configuration of every child, in one place
client.py       submit, progress and download over HTTP
file_check.py   rows and their order in a finished file
screen.py       the progress bar
run.py          puts them together
"""
