"""The thread that sweeps."""

import threading

from exports.pipeline.middleware.sweeper import Sweeper


def run(sweep, *, until):
    sweeper = Sweeper(sweep, every_s=0.01)
    sweeper.after_worker_boot(None, None)
    try:
        assert until.wait(10)
    finally:
        sweeper.before_worker_shutdown(None, None)
        for thread in threading.enumerate():
            if thread.name == "sweeper":
                thread.join(10)


def test_the_first_pass_that_goes_through_is_the_boot_pass():
    passes, enough = [], threading.Event()

    def sweep(*, boot=False):
        passes.append(boot)
        if len(passes) == 4:
            enough.set()
        if len(passes) < 3:
            raise ConnectionError

    run(sweep, until=enough)
    assert passes[:4] == [True, True, True, False]


def test_nothing_is_swept_after_the_worker_began_to_stop():
    passes, once = [], threading.Event()

    def sweep(*, boot=False):
        passes.append(boot)
        once.set()

    run(sweep, until=once)
    seen = len(passes)
    threading.Event().wait(0.1)
    assert len(passes) == seen
