"""What operators see and do over many tasks, for the ops page and the commands alike: the overview, lists by filter, and
actions with a preview. What concerns one task alone goes through `service`.
"""
