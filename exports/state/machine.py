"""The state machine as data: which script may move a task from which state to which.

Pure. The scripts in `lua/` do the work; a test drives every script against every state and compares with this table.
"""

from collections.abc import Mapping

from exports.contracts import State

_RUN = frozenset({State.RUNNING})
_ENDING = frozenset({State.RUNNING, State.FAILED, State.CANCELLED})

TRANSITIONS: Mapping[str, Mapping[State, frozenset[State]]] = {
    # from queued or running: a claim starts the task
    "claim_step": {State.QUEUED: _RUN, State.RUNNING: _RUN},
    # under a lease, so only while running
    "renew_lease": {State.RUNNING: _RUN},
    "keep_plan": {State.RUNNING: _RUN},
    "write_plan": {State.RUNNING: _RUN},
    "commit_page": {State.RUNNING: _RUN},
    "finish_shard": {State.RUNNING: _RUN},
    "write_recipe": {State.RUNNING: _RUN},
    "begin_upload": {State.RUNNING: _RUN},
    "record_part": {State.RUNNING: _RUN},
    "retry_step": {State.RUNNING: _ENDING},
    "halve_page": {State.RUNNING: _ENDING},
    "reopen_shard": {State.RUNNING: _ENDING},
    "recover_step": {State.RUNNING: _ENDING},
    "fail_task": {State.RUNNING: frozenset({State.FAILED, State.CANCELLED})},
    "release_step": {State.RUNNING: frozenset({State.RUNNING, State.CANCELLED})},
    "publish_task": {State.RUNNING: frozenset({State.SUCCEEDED, State.CANCELLED})},
    "complete_cancel": {State.RUNNING: frozenset({State.RUNNING, State.CANCELLED})},
    "mark_stalled": {State.RUNNING: _RUN},
    "move_task": {State.RUNNING: _RUN},
    # no worker can go on with it
    "fail_foreign": {State.QUEUED: frozenset({State.QUEUED, State.FAILED}), State.RUNNING: _ENDING},
    # its spool has no workers
    "fail_stranded": {State.QUEUED: frozenset({State.QUEUED, State.FAILED}), State.RUNNING: _ENDING},
    # it has run for too long
    "fail_overdue": {State.RUNNING: _ENDING},
    # asked for by a person
    "cancel_task": {
        State.QUEUED: frozenset({State.CANCELLED}),
        State.RUNNING: frozenset({State.RUNNING, State.CANCELLED}),
        State.FAILED: frozenset({State.CANCELLED}),
    },
    "append_audit": {state: frozenset({state}) for state in State},
    "rerun_task": {State.FAILED: frozenset({State.QUEUED})},
    "delete_task": {
        State.SUCCEEDED: frozenset({State.SUCCEEDED}),
        State.FAILED: frozenset({State.CANCELLED}),
        State.CANCELLED: frozenset({State.CANCELLED}),
    },
}
"""Script → state before → states after. A state that is missing is refused and nothing changes."""
