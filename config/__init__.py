"""The composition root: the environment, the settings, the broker and the processes.

It imports `exports`, never the other way round. Libraries that read the environment at their own import find what
they need there, because this package runs first.
"""

from config import env

env.set_library_defaults()
