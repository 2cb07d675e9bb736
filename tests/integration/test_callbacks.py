"""From the end of a task to a verified delivery, against real Redis, the real stages and a real receiver."""

import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from standardwebhooks.webhooks import Webhook

from exports import service
from exports.callbacks import Callback, CallbackEvent, CallbackKey, CallbackResult, Outcome
from exports.conf import conf
from exports.contracts import Principal, Right, Shard, Step
from exports.errors import FieldInvalid, StateConflict, StepBroken
from exports.pipeline import endings, notify, outbox, plan, steps, sweep
from exports.state.callbacks import CallbackClaim
from exports.state.keys import ref_of
from exports.state.store import Store, store
from exports.views import TaskView
from exports.webhooks import signing
from tests import kinds, pipeline
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc
from tests.processes import wait_for
from tests.receiver import OPEN, OTHER_SECRET, SECRET, Receiver, receiving

DAY = "2026-09-14"
OPS = Principal("ops", frozenset(Right))


@pytest.fixture
def receiver(desk: Path, sqlite_orders: OrdersDatabase) -> Iterator[Receiver]:
    """One endpoint, `shop`, that wants everything; pauses are short."""
    sqlite_orders.insert({"id": number, "created_at": utc(f"{DAY} 04:00:{number:02d}")} for number in range(1, 31))
    with receiving() as found, settings(found.endpoint()):
        yield found


def settings(*endpoints: Any, **changes: Any) -> Any:
    return exports_settings(
        **{"callbacks": endpoints, "callback_timeout_ms": 2000, "callback_delays_ms": (40, 80, 160), **OPEN, **changes}
    )


def succeed() -> str:
    task_id = pipeline.submit(DAY, DAY)
    assert pipeline.work(task_id).state == "succeeded"
    return task_id


def fail() -> str:
    def broken(_shard: Shard, _cursor: str, _limit: int) -> None:
        raise StepBroken("as if by a fault nobody knows")

    kinds.FlakyOrders.before_read.append(broken)
    task_id = pipeline.submit(DAY, DAY)
    assert pipeline.work(task_id).state == "failed"
    kinds.FlakyOrders.before_read.clear()
    return task_id


def callbacks(task_id: str) -> list[Callback]:
    return service.read_callbacks(task_id, principal=OPS)


def deliver(task_id: str, *, limit_s: float = 20) -> list[Callback]:
    """Deliver until no callback of the task waits any more."""
    deadline = time.monotonic() + limit_s
    while True:
        notify.deliver_due()
        found = callbacks(task_id)
        if all(callback.state != "waiting" for callback in found):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


def states(task_id: str) -> list[tuple[str, str]]:
    return [(str(callback.key), callback.state) for callback in callbacks(task_id)]


# --- events ----------------------------------------------------------------------------------


def test_a_finished_export_is_told_once_with_what_the_api_shows(receiver: Receiver) -> None:
    task_id = succeed()
    deliver(task_id)
    notify.deliver_due()
    [received] = receiver.received
    body = Webhook(SECRET).verify(received.body, received.headers)
    view = pipeline.view(task_id)
    assert body["type"] == "export.succeeded"
    assert body["data"]["taskId"] == task_id
    assert (body["data"]["state"], body["data"]["processed"], body["data"]["epoch"]) == ("succeeded", 30, 1)
    assert (body["data"]["sha256"], body["data"]["fileSize"]) == (view.sha256, view.file_size)
    assert body["data"]["errorCode"] is None
    assert received.id == f"{task_id}-1-succeeded-shop"
    assert received.headers["traceparent"].split("-")[1] == view.trace_id
    mac = hmac.new(signing.key_of(SECRET), received.body, hashlib.sha256).hexdigest()
    assert received.headers["X-Signature"] == f"sha256={mac}"
    assert received.headers["X-Signature-Timestamp"] == received.headers["webhook-timestamp"]


def test_a_failed_and_a_cancelled_export_are_told(receiver: Receiver) -> None:
    failed, cancelled = fail(), pipeline.submit(DAY, DAY)
    service.cancel(cancelled, principal=OPS)
    deliver(failed)
    deliver(cancelled)
    bodies = {json.loads(received.body)["data"]["taskId"]: json.loads(received.body) for received in receiver.received}
    assert (bodies[failed]["type"], bodies[failed]["data"]["errorCode"]) == ("export.failed", "unclassified")
    assert (bodies[cancelled]["type"], bodies[cancelled]["data"]["state"]) == ("export.cancelled", "cancelled")


def test_a_stalled_task_is_told_once_an_epoch_and_again_when_it_ends(receiver: Receiver) -> None:
    task_id = pipeline.submit(DAY, DAY)
    for _ in range(2):
        outbox.event(pipeline.view(task_id), CallbackEvent.STALLED)
    deliver(task_id)
    assert [json.loads(received.body)["type"] for received in receiver.received] == ["export.stalled"]
    pipeline.work(task_id)
    deliver(task_id)
    assert states(task_id) == [("1-stalled-shop", "delivered"), ("1-succeeded-shop", "delivered")]


def test_whoever_marks_a_stall_tells_it(receiver: Receiver) -> None:
    task_id = pipeline.submit(DAY, DAY)
    request = pipeline.view(task_id).request
    steps.claim_step(ref_of(task_id, request), request, Step.PLAN)  # its worker hangs from here on
    with settings(receiver.endpoint(), stalled_after_s=1):
        wait_for(lambda: service.is_stalled(pipeline.view(task_id)))
        sweep.end_stuck()
        sweep.end_stuck()
    assert [str(callback.key) for callback in deliver(task_id)] == ["1-stalled-shop"]


@pytest.mark.parametrize("dies_at", ["event", "mark"])
def test_a_stall_is_told_though_its_sweep_died(
    receiver: Receiver, dies_at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    def stored() -> TaskView:
        view = store().read(task_id)
        assert view is not None
        return view

    task_id = pipeline.submit(DAY, DAY)
    request = pipeline.view(task_id).request
    steps.claim_step(ref_of(task_id, request), request, Step.PLAN)
    with settings(receiver.endpoint(), stalled_after_s=1):
        wait_for(lambda: service.is_stalled(stored()))  # a reader of the service would mark it
        with monkeypatch.context() as dying, pytest.raises(KeyboardInterrupt):
            # As if by a kill before each of the two.
            dying.setattr(*{"event": (outbox, "event"), "mark": (Store, "mark_stalled")}[dies_at], die)
            sweep.end_stuck()
        sweep.end_stuck()
        assert stored().stalled_at is not None
    assert [str(callback.key) for callback in deliver(task_id)] == ["1-stalled-shop"]


@pytest.mark.parametrize("end", ["rerun", "cancel"])
def test_a_failure_is_told_though_its_worker_died_and_the_task_goes_on(
    receiver: Receiver, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_shard: Shard, _cursor: str, _limit: int) -> None:
        raise StepBroken

    task_id = pipeline.submit(DAY, DAY)
    kinds.FlakyOrders.before_read.append(broken)
    with monkeypatch.context() as dying:
        # As if by a kill between the script and what its word means.
        dying.setattr(endings, "settle", lambda *_, **__: None)
        plan.plan.fn()
    kinds.FlakyOrders.before_read.clear()
    assert pipeline.view(task_id).state == "failed"
    assert callbacks(task_id) == []
    if end == "rerun":
        service.rerun(task_id, principal=OPS)
        pipeline.work(task_id)
    else:
        service.cancel(task_id, principal=OPS)
    deliver(task_id)
    [failed] = [json.loads(received.body) for received in receiver.received if "failed" in received.id]
    assert (failed["data"]["state"], failed["data"]["errorCode"]) == ("failed", "unclassified")
    wanted = "2-succeeded-shop" if end == "rerun" else "1-cancelled-shop"
    assert states(task_id) == [("1-failed-shop", "delivered"), (wanted, "delivered")]


def test_an_end_is_told_with_its_file_though_the_task_is_deleted_before(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dying:
        dying.setattr(endings, "settle", lambda *_, **__: None)
        task_id = succeed()
    assert callbacks(task_id) == []
    sha256 = pipeline.view(task_id).sha256
    service.delete(task_id, principal=OPS, reason="")
    notify.deliver_due()
    [body] = [json.loads(received.body) for received in receiver.received]
    assert (body["type"], body["data"]["sha256"]) == ("export.succeeded", sha256)


def test_endpoints_get_what_they_want_of_whom_they_want(receiver: Receiver) -> None:
    with settings(
        receiver.endpoint("all"),
        receiver.endpoint("ann", owner="ann", events=("export.succeeded",)),
        receiver.endpoint("ann-failed", owner="ann", events=("export.failed",)),
        receiver.endpoint("bob", owner="bob"),
    ):
        task_id = succeed()
        deliver(task_id)
    assert sorted(received.path for received in receiver.received) == ["/all", "/ann"]
    assert len({received.id for received in receiver.received}) == 2


def test_without_endpoints_nothing_is_kept_and_nothing_is_told_later(
    receiver: Receiver, redis_db: "redis.Redis"
) -> None:
    with settings():
        task_id = succeed()
        sweep.sweep(boot=True)
    assert redis_db.zcard("export:notify") == 0
    sweep.sweep(boot=True)
    assert deliver(task_id) == []
    assert receiver.received == []


def test_the_sweep_wakes_a_worker_for_what_is_due(receiver: Receiver) -> None:
    from exports.pipeline import hints

    task_id = succeed()
    assert hints.waiting(hints.CALLBACKS.place) >= 1
    deliver(task_id)
    before = hints.waiting(hints.CALLBACKS.place)
    sweep.sweep(boot=True)
    assert hints.waiting(hints.CALLBACKS.place) == before


# --- tries -----------------------------------------------------------------------------------


def test_a_failed_delivery_is_tried_again_with_the_same_bytes(receiver: Receiver) -> None:
    receiver.answers(500, 503, 200)
    task_id = succeed()
    before = pipeline.view(task_id)
    [callback] = deliver(task_id)
    assert (callback.state, callback.attempts) == ("delivered", 3)
    assert len({received.body for received in receiver.received}) == 1
    assert len({received.id for received in receiver.received}) == 1
    for received in receiver.received:
        Webhook(SECRET).verify(received.body, received.headers)
    assert [attempt.status for attempt in callback.log] == [500, 503, 200]
    pauses = [later.at - former.at for former, later in zip(receiver.received, receiver.received[1:], strict=False)]
    assert pauses[0] >= 0.032 and pauses[1] >= 0.064
    after = pipeline.view(task_id)
    assert (before.state, before.finished_at, before.epoch) == (after.state, after.finished_at, after.epoch)


def test_tries_are_used_up_then_it_has_failed_and_stays_listed(receiver: Receiver) -> None:
    receiver.answers(500)
    task_id = succeed()
    [callback] = deliver(task_id)
    assert (callback.state, callback.attempts, len(receiver.received)) == ("failed", 4, 4)
    assert store().failed_callbacks(0) == [(task_id, callback.key)]
    counters = store().counters()
    assert counters.callbacks[CallbackResult.REFUSED] == 4
    assert counters.callbacks[CallbackResult.DELIVERED] == 0


def test_410_ends_an_endpoint_for_this_task_alone(receiver: Receiver) -> None:
    receiver.answers(410, 200)
    task_id = pipeline.submit(DAY, DAY)
    outbox.event(pipeline.view(task_id), CallbackEvent.STALLED)
    [callback] = deliver(task_id)
    assert (callback.state, callback.attempts) == ("failed", 1)
    pipeline.work(task_id)
    deliver(task_id)
    assert states(task_id) == [("1-stalled-shop", "failed")]
    other = succeed()
    deliver(other)
    assert states(other) == [("1-succeeded-shop", "delivered")]


def test_retry_after_is_kept(receiver: Receiver) -> None:
    receiver.answers((429, {"Retry-After": "7"}, b""), 200)
    task_id = succeed()
    notify.deliver_due()
    [callback] = callbacks(task_id)
    assert callback.next_at is not None
    assert 6.9 <= (callback.next_at - callback.log[0].sent_at).total_seconds() <= 12
    notify.deliver_due()
    assert len(receiver.received) == 1


def test_pauses_grow_with_jitter_and_stay_below_a_day() -> None:
    with exports_settings(callback_delays_ms=(1000, 4000, 16_000)):
        planned = [notify.pause_after(tries, multiplier=0, retry_after_ms=0) for tries in (1, 2, 3, 9)]
        replayed = [notify.pause_after(tries, multiplier=3, retry_after_ms=0) for tries in (1, 2, 3)]
        assert len({notify.pause_after(2, multiplier=0, retry_after_ms=0) for _ in range(20)}) > 1
        assert notify.pause_after(1, multiplier=0, retry_after_ms=90_000) == 90_000
        assert notify.pause_after(10, multiplier=10, retry_after_ms=0) <= 1.2 * 86_400_000
    for pause, middle in zip([*planned, *replayed], [1000, 4000, 16_000, 16_000, 1000, 3000, 9000], strict=True):
        assert 0.8 * middle <= pause <= 1.2 * middle


def test_a_name_that_resolves_to_an_inner_address_is_a_failed_delivery_with_its_reason(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_up = socket.getaddrinfo

    def stub(host: str, *rest: Any, **options: Any) -> Any:
        numeric = options.get("flags") == socket.AI_NUMERICHOST
        return look_up("172.16.0.9" if host == "hook.test" and not numeric else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", stub)
    with settings({**receiver.endpoint(), "url": "https://hook.test/"}, callback_private_addresses=False):
        [callback] = deliver(succeed())
    assert callback.state == "failed"
    assert {(attempt.result, attempt.reason) for attempt in callback.log} == {
        (CallbackResult.BLOCKED, "address not allowed")
    }


# --- dying senders ---------------------------------------------------------------------------


def claim_one(task_id: str, *, lease_ms: int = 10_000) -> Any:
    return store().claim_callback(task_id, CallbackKey(1, CallbackEvent.SUCCEEDED, "shop"), lease_ms=lease_ms)


def ok(result: CallbackResult = CallbackResult.DELIVERED) -> Outcome:
    return Outcome(result, duration_ms=5, status=200)


def test_a_sender_that_dies_between_send_and_record_leaves_it_due_and_leaves_its_trace(receiver: Receiver) -> None:
    task_id = succeed()
    assert isinstance(claim_one(task_id, lease_ms=50), CallbackClaim)
    [callback] = deliver(task_id)
    assert [(attempt.number, attempt.result) for attempt in callback.log] == [(1, None), (2, CallbackResult.DELIVERED)]
    assert receiver.received[0].id == f"{task_id}-1-succeeded-shop"


def test_a_callback_is_claimed_by_one_sender_at_a_time(receiver: Receiver) -> None:
    task_id = succeed()
    assert isinstance(claim_one(task_id), CallbackClaim)
    assert claim_one(task_id) == "wait"
    notify.deliver_due()
    assert receiver.received == []


def test_a_late_word_of_a_sender_that_was_overtaken_is_only_audited(receiver: Receiver) -> None:
    task_id = succeed()
    late = claim_one(task_id, lease_ms=1)
    time.sleep(0.01)
    current = claim_one(task_id)
    assert store().record_callback(late, ok(CallbackResult.TIMEOUT), pause_ms=0) == "lost"
    assert states(task_id) == [("1-succeeded-shop", "waiting")]
    assert store().record_callback(current, ok(), pause_ms=0) == "delivered"
    [callback] = callbacks(task_id)
    assert [attempt.result for attempt in callback.log] == [CallbackResult.TIMEOUT, CallbackResult.DELIVERED]


def test_a_record_whose_reply_was_lost_counts_once(receiver: Receiver) -> None:
    task_id = succeed()
    claim = claim_one(task_id)
    for _ in range(2):
        assert store().record_callback(claim, ok(), pause_ms=0) == "delivered"
    assert store().counters().callbacks[CallbackResult.DELIVERED] == 1


def test_an_attempt_that_kills_its_sender_each_time_ends(receiver: Receiver) -> None:
    task_id = succeed()
    for _ in range(4):
        assert isinstance(claim_one(task_id, lease_ms=1), CallbackClaim)
        time.sleep(0.01)
    assert claim_one(task_id) == "failed"
    assert states(task_id) == [("1-succeeded-shop", "failed")]
    assert store().failed_callbacks(0) != []


# --- slow and bad receivers ------------------------------------------------------------------


def test_a_receiver_that_hangs_delays_no_other_though_many_wait_for_it(receiver: Receiver) -> None:
    receiver.answer = lambda received, _before: receiver.hang if received.path == "/slow" else 200
    with settings(receiver.endpoint("slow"), receiver.endpoint("sound"), callback_timeout_ms=10_000):
        views = [pipeline.view(pipeline.submit(DAY, DAY)) for _ in range(40)]
        for view in views:
            outbox.event(view, CallbackEvent.STALLED)
        courier = threading.Thread(target=notify.deliver_due)
        courier.start()
        try:
            wait_for(lambda: len(receiver.of("sound")) == 40, limit_s=8)
            assert len(receiver.of("slow")) == 2
            # What ends meanwhile is told at once, while the others still hang.
            outbox.event(views[0], CallbackEvent.FAILED)
            wait_for(lambda: len(receiver.of("sound")) == 41, limit_s=8)
            assert len(receiver.of("slow")) == 2
        finally:
            receiver.answers(200)
            receiver.over.set()
            courier.join(60)
        assert not courier.is_alive()
        assert {state for view in views for _, state in states(view.task_id)} == {"delivered"}


# --- replay and audit ------------------------------------------------------------------------


def test_a_replay_sends_the_same_bytes_under_the_same_id_and_is_counted(receiver: Receiver) -> None:
    task_id = succeed()
    deliver(task_id)
    [replayed] = service.replay_callbacks(task_id, principal=pipeline.ANN, attempts=1, multiplier=2)
    [callback] = deliver(task_id)
    assert replayed.callback_id == receiver.received[0].id
    assert (callback.state, callback.attempts, callback.replays) == ("delivered", 2, 1)
    assert receiver.received[0].body == receiver.received[1].body
    assert receiver.received[0].id == receiver.received[1].id
    assert store().counters().callback_replays == 1
    assert [event.detail for event in store().events(task_id) if event.name == "replayed"] == ["ann"]


def test_a_replay_has_attempts_of_its_own(receiver: Receiver) -> None:
    receiver.answers(500)
    task_id = succeed()
    deliver(task_id)
    service.replay_callbacks(task_id, principal=OPS, attempts=2, multiplier=2)
    [callback] = deliver(task_id)
    assert (callback.state, callback.attempts) == ("failed", 6)


def test_a_replay_takes_the_last_event_or_the_one_that_is_named(receiver: Receiver) -> None:
    task_id = fail()
    sweep.sweep(boot=True)
    service.rerun(task_id, principal=OPS)
    pipeline.work(task_id)
    deliver(task_id)
    [last] = service.replay_callbacks(task_id, principal=OPS, attempts=1, multiplier=1)
    assert last.callback_id == f"{task_id}-2-succeeded-shop"
    named = f"{task_id}-1-failed-shop"
    [one] = service.replay_callbacks(task_id, principal=OPS, attempts=1, multiplier=1, callback_id=named)
    assert one.callback_id == named
    with pytest.raises(FieldInvalid):
        service.replay_callbacks(task_id, principal=OPS, attempts=1, multiplier=1, callback_id="another")


def test_a_replay_lifts_a_410(receiver: Receiver) -> None:
    receiver.answers(410, 200)
    task_id = succeed()
    deliver(task_id)
    service.replay_callbacks(task_id, principal=OPS, attempts=1, multiplier=1)
    [callback] = deliver(task_id)
    assert callback.state == "delivered"


def test_all_that_failed_since_a_time_is_sent_anew(receiver: Receiver) -> None:
    receiver.answers(500, 500, 500, 500)
    first = succeed()
    deliver(first)
    second = succeed()
    deliver(second)
    between = max(attempt.sent_at for attempt in callbacks(first)[0].log)
    receiver.answers(200)
    assert (
        service.replay_failed_callbacks(
            between, principal=Principal("bob", OPS.rights - {Right.OPS_READ, Right.OPS_ACT}), attempts=1, multiplier=1
        )
        == []
    )
    replayed = service.replay_failed_callbacks(between, principal=pipeline.ANN, attempts=1, multiplier=1)
    assert {one.task_id for one in replayed} == {first, second}
    for task_id in (first, second):
        assert deliver(task_id)[0].state == "delivered"
    assert store().failed_callbacks(0) == []


def test_a_task_without_callbacks_has_nothing_to_replay(receiver: Receiver) -> None:
    with settings(receiver.endpoint(owner="bob")):
        task_id = succeed()
        with pytest.raises(StateConflict, match="no_callback"):
            service.replay_callbacks(task_id, principal=OPS, attempts=1, multiplier=1)


def test_the_audit_keeps_the_last_fifty_attempts(receiver: Receiver) -> None:
    with settings(receiver.endpoint(), callback_delays_ms=(0,) * 60):
        receiver.answers(500)
        task_id = succeed()
        [callback] = deliver(task_id)
    assert (callback.attempts, len(callback.log)) == (61, 50)
    assert [attempt.number for attempt in callback.log] == list(range(12, 62))
    assert all(attempt.response_at and attempt.response_at >= attempt.sent_at for attempt in callback.log)


def test_callbacks_expire_with_their_task(receiver: Receiver, redis_db: "redis.Redis") -> None:
    task_id = pipeline.submit(DAY, DAY)
    outbox.event(pipeline.view(task_id), CallbackEvent.STALLED)
    deliver(task_id)
    names = [f"export:callbacks:{task_id}", f"export:attempts:{task_id}"]
    assert {redis_db.pttl(name) for name in names} == {-1}
    pipeline.work(task_id)
    deliver(task_id)
    assert {redis_db.pexpiretime(name) for name in names} == {redis_db.pexpiretime(f"export:task:{task_id}")}
    assert (
        0 < redis_db.pttl("export:callbacks-due:shop") <= conf().state_days * 86_400_000
        or redis_db.exists("export:callbacks-due:shop") == 0
    )


def test_a_callback_whose_task_has_expired_is_dropped(receiver: Receiver, redis_db: "redis.Redis") -> None:
    task_id = succeed()
    sweep.sweep(boot=True)
    redis_db.delete(f"export:callbacks:{task_id}", f"export:task:{task_id}")
    notify.deliver_due()
    assert receiver.received == []
    assert redis_db.exists("export:callbacks-due:shop") == 0


def test_a_rotated_secret_signs_twice(receiver: Receiver) -> None:
    with settings(receiver.endpoint(secrets=[OTHER_SECRET, SECRET])):
        deliver(succeed())
    for secret in (SECRET, OTHER_SECRET):
        Webhook(secret).verify(receiver.received[0].body, receiver.received[0].headers)


def test_a_ping_is_signed_and_leaves_no_trace(receiver: Receiver, redis_db: "redis.Redis") -> None:
    before = set(redis_db.keys("export:*"))
    assert service.ping_endpoint("shop").result is CallbackResult.DELIVERED
    assert Webhook(SECRET).verify(receiver.received[0].body, receiver.received[0].headers)["type"] == "export.ping"
    assert set(redis_db.keys("export:*")) == before
    with pytest.raises(FieldInvalid):
        service.ping_endpoint("another")


def test_without_a_worker_hints_do_not_pile_up(receiver: Receiver) -> None:
    from exports.pipeline import hints

    for _ in range(3):
        succeed()
    sweep.sweep(boot=True)
    assert hints.waiting(hints.CALLBACKS.place) == 1
