"""`manage.py export_rerun TASK`, or `--failed-since 2h`: queue failed tasks again."""

from argparse import ArgumentParser
from typing import Any

from exports.conf import conf
from exports.contracts import State
from exports.management import arguments, shapes
from exports.management.base import OPERATOR, Answer, ExportCommand, note, sentence
from exports.operations import actions, listing
from exports.operations.actions import Action, Effect, Order, Outcome


class Command(ExportCommand):
    help = "Runs failed tasks again. Rows that were written are kept; only what is missing is read."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        bounds = (conf().page_rows_min, conf().page_rows)
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("task", type=arguments.not_empty, nargs="?", help="taskId, such as exp_01J8Z4K2…")
        which.add_argument(
            "--failed-since",
            type=arguments.age,
            metavar="AGE",
            help=f"all tasks that failed at most so long ago (90m, 2h, 3d), up to {actions.MOST} at once",
        )
        parser.add_argument("--from-scratch", action="store_true", help="plan anew and read every row again")
        parser.add_argument(
            "--shard",
            type=arguments.not_empty,
            action="append",
            default=[],
            metavar="DAY",
            help="read this shard again from its first row too",
        )
        parser.add_argument(
            "--page-size",
            type=arguments.number(*bounds),
            metavar="ROWS",
            help=f"rows of the pages to come, {bounds[0]:,} to {bounds[1]:,}",
        )
        parser.add_argument("--reason", default="", help="why; kept in the task's history")
        parser.add_argument("--dry-run", action="store_true", help="only tell what would be read")

    def answer(self, given: dict[str, Any]) -> Answer:
        order = Order(
            action=Action.SCRATCH if given["from_scratch"] else Action.RERUN,
            reason=given["reason"],
            again=given["shard"],
            page_rows=given["page_size"],
        )
        tasks = [given["task"]] if given["task"] else _failed_since(given)
        if given["dry_run"]:
            return _foreseen(actions.preview(order, tasks, principal=OPERATOR))
        outcomes = actions.carry_out(order, tasks, principal=OPERATOR)
        for outcome in outcomes:
            if outcome.task:
                note(
                    "rerun",
                    task_id=outcome.task_id,
                    trace_id=outcome.task.trace_id,
                    result=f"run {outcome.task.epoch}",
                )
        if given["task"]:
            return _single(outcomes[0])
        return _many(outcomes)


def _failed_since(given: dict[str, Any]) -> list[str]:
    wanted = listing.Wanted(state=State.FAILED, changed_within=given["failed_since"])
    return [view.task_id for view in listing.find(wanted, limit=actions.MOST).tasks]


def _foreseen(effects: list[Effect]) -> Answer:
    lines = [_effect_line(effect) for effect in effects] or ["no tasks"]
    return Answer(lines, {"dryRun": True, "tasks": [_effect_data(effect) for effect in effects]})


def _effect_line(effect: Effect) -> str:
    if effect.refusal:
        return f"{effect.task.task_id} would stay as it is: {sentence(effect.refusal)}"
    if effect.rows is None:
        return f"{effect.task.task_id} would be planned anew and read from the first row"
    return (
        f"{effect.task.task_id} would read {effect.shards} shards, {effect.rows:,} rows; {effect.kept:,} rows are kept"
    )


def _effect_data(effect: Effect) -> dict[str, Any]:
    return {
        "taskId": effect.task.task_id,
        "shards": effect.shards,
        "rows": effect.rows,
        "kept": effect.kept,
        "refusal": effect.refusal.code if effect.refusal else None,
    }


def _single(outcome: Outcome) -> Answer:
    if outcome.task is None:
        assert outcome.refusal is not None
        raise outcome.refusal
    return Answer([_outcome_line(outcome)], shapes.task_data(outcome.task))


def _many(outcomes: list[Outcome]) -> Answer:
    refused = [outcome for outcome in outcomes if outcome.refusal]
    lines = [_outcome_line(outcome) for outcome in outcomes] or ["no tasks"]
    return Answer(lines, {"tasks": [_outcome_data(outcome) for outcome in outcomes]}, done=not refused)


def _outcome_line(outcome: Outcome) -> str:
    view = outcome.task
    if view is None:
        assert outcome.refusal is not None
        return f"{outcome.task_id} stays as it is: {sentence(outcome.refusal)}"
    kept = f"{view.processed:,} rows are kept" if view.processed else "from the first row"
    return f"{view.task_id} is {view.state} again (run {view.epoch}), {kept}"


def _outcome_data(outcome: Outcome) -> dict[str, Any]:
    state = outcome.task.state if outcome.task else None
    return {
        "taskId": outcome.task_id,
        "state": state,
        "refusal": outcome.refusal.code if outcome.refusal else None,
    }
