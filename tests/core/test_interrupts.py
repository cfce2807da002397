"""Ctrl-C at a good moment."""

from __future__ import annotations

import signal
import threading

import pytest

from tilesage.core.interrupts import postponed

pytestmark = pytest.mark.usefixtures("plain_ctrl_c")


def test_it_is_noticed_at_once_and_raised_at_the_end() -> None:
    told: list[str] = []

    def block() -> None:
        with postponed(lambda: told.append("noticed")):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            told.append("finished")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert told == ["noticed", "noticed", "finished"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_comes_first() -> None:
    def block() -> None:
        with postponed():
            signal.raise_signal(signal.SIGINT)
            raise ValueError

    with pytest.raises(ValueError):
        block()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_who_answers_it_already_goes_on_doing_so() -> None:
    told: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: told.append(number))
    try:
        with postponed():
            signal.raise_signal(signal.SIGINT)
            assert told == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_thread_that_never_gets_it() -> None:
    ended: list[bool] = []

    def work() -> None:
        with postponed():
            ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended == [True]
