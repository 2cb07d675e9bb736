"""The HTTP front: frozen protocol, problem details, identity, download links, probes and metrics.

`urls` names every address; `base.ApiView` is what all of them share; `representation` makes the body of a task.
"""
