"""`manage.py export_callbacks`: what others were told of a task, telling it again, and a test call."""

from argparse import SUPPRESS, ArgumentParser
from typing import Any

from exports import service
from exports.callbacks import REPLAY_ATTEMPTS, REPLAY_MULTIPLIER, Attempt, Callback, CallbackResult
from exports.management import arguments
from exports.management.base import OPERATOR, Answer, ExportCommand, note
from exports.views import to_second


class Command(ExportCommand):
    help = "Shows the callbacks of a task with every attempt, sends callbacks anew, or makes a test call."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", required=True)
        shown = actions.add_parser("list", help="the callbacks of a task")
        shown.add_argument("task", help="taskId")
        replay = actions.add_parser("replay", help="send the callbacks of a task's last event anew")
        replay.add_argument("task", help="taskId")
        replay.add_argument("--callback", type=arguments.not_empty, help="only this one, by its id")
        failed = actions.add_parser("replay-failed", help="send anew all that have failed since a time")
        failed.add_argument(
            "--since",
            type=arguments.moment,
            required=True,
            metavar="TIME",
            help="such as 2026-09-30T08:00; UTC without a zone",
        )
        for tries in (replay, failed):
            tries.add_argument(
                "--attempts", type=arguments.number(1, 10), default=REPLAY_ATTEMPTS, help="1 to 10 (%(default)s)"
            )
            tries.add_argument(
                "--multiplier",
                type=arguments.multiplier,
                default=REPLAY_MULTIPLIER,
                help="of the pauses, 1 to 10 (%(default)s)",
            )
        ping = actions.add_parser("ping", help="a test call to an endpoint, once and now")
        ping.add_argument("endpoint", help="its id in the settings")
        for action in (shown, replay, failed, ping):
            # Also behind the action, where people write it.
            action.add_argument("--json", action="store_true", default=SUPPRESS, help="one JSON object on stdout")

    def answer(self, given: dict[str, Any]) -> Answer:
        actions = {"list": _list, "replay": _replay, "replay-failed": _replay_failed, "ping": _ping}
        return actions[given["action"]](given)


def _list(given: dict[str, Any]) -> Answer:
    task = given["task"]
    found = service.read_callbacks(task, principal=OPERATOR)
    lines = [line for callback in found for line in _lines(task, callback)]
    return Answer(lines or ["no callbacks"], {"callbacks": [_data(task, callback) for callback in found]})


def _replay(given: dict[str, Any]) -> Answer:
    replayed = service.replay_callbacks(
        given["task"],
        principal=OPERATOR,
        attempts=given["attempts"],
        multiplier=given["multiplier"],
        callback_id=given["callback"] or "",
    )
    return _replayed(replayed)


def _replay_failed(given: dict[str, Any]) -> Answer:
    replayed = service.replay_failed_callbacks(
        given["since"], principal=OPERATOR, attempts=given["attempts"], multiplier=given["multiplier"]
    )
    return _replayed(replayed)


def _replayed(replayed: list[service.Replayed]) -> Answer:
    for one in replayed:
        note("replay", task_id=one.task_id, trace_id=one.trace_id, result=one.callback_id)
    lines = [f"{one.callback_id} is sent anew" for one in replayed] or ["nothing to send"]
    return Answer(lines, {"replayed": [one.callback_id for one in replayed]})


def _ping(given: dict[str, Any]) -> Answer:
    outcome = service.ping_endpoint(given["endpoint"])
    why = outcome.reason or (f"status {outcome.status}" if outcome.status else "")
    line = f"{outcome.result}: {why}, {outcome.duration_ms} ms"
    data = {
        "result": outcome.result,
        "statusCode": outcome.status or None,
        "durationMs": outcome.duration_ms,
        "reason": outcome.reason or None,
        "responseBody": outcome.body,
    }
    return Answer([line], data, done=outcome.result is CallbackResult.DELIVERED)


def _lines(task: str, callback: Callback) -> list[str]:
    following = f", next attempt {to_second(callback.next_at)}" if callback.next_at else ""
    head = f"{callback.key.message_id(task)}  {callback.state}  {callback.attempts} attempts{following}"
    return [head, *(_attempt_line(attempt) for attempt in callback.log)]


def _attempt_line(attempt: Attempt) -> str:
    result = attempt.result or "no word of its end"
    return (
        f"  {attempt.number:>3}  {to_second(attempt.sent_at)}  {result:<11} {attempt.status or '-':>3}"
        f"  {attempt.duration_ms:>6} ms  {attempt.reason}".rstrip()
    )


def _data(task: str, callback: Callback) -> dict[str, Any]:
    return {
        "callbackId": callback.key.message_id(task),
        "event": callback.key.event.type,
        "endpoint": callback.key.endpoint,
        "state": callback.state,
        "attempts": callback.attempts,
        "replays": callback.replays,
        "nextAttemptAt": to_second(callback.next_at),
        "payload": callback.body,
        "log": [_attempt_data(attempt) for attempt in callback.log],
    }


def _attempt_data(attempt: Attempt) -> dict[str, Any]:
    return {
        "attempt": attempt.number,
        "sentAt": to_second(attempt.sent_at),
        "responseAt": to_second(attempt.response_at),
        "result": attempt.result,
        "statusCode": attempt.status or None,
        "durationMs": attempt.duration_ms,
        "reason": attempt.reason or None,
        "responseBody": attempt.body,
    }
