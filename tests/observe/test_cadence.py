"""When things are due, also by a clock that is set."""

from gpuwhy.observe.cadence import BackOff, Every

NOW = 1_790_000_000.0


def test_once_in_each_period():
    every = Every(1.0)
    due = [NOW + 0.5 * i for i in range(20) if every.due(NOW + 0.5 * i)]
    assert due == [NOW + i for i in range(10)]


def test_a_poll_that_comes_a_little_early_is_on_time():
    every = Every(1.0)
    assert [every.due(NOW + t) for t in (0.0, 0.96, 1.5, 1.9)] == [True, True, False, True]


def test_a_clock_set_back_does_not_silence():
    every, off = Every(10.0), BackOff(10.0, 60.0)
    every.due(NOW)
    off.failed(NOW)
    assert every.due(NOW - 3600)
    assert off.due(NOW - 3600)


def test_waits_double_up_to_the_most_and_end_with_success():
    off = BackOff(1.0, 5.0)
    assert off.due(NOW)
    waits = []
    for _ in range(4):
        off.failed(NOW)
        waits.append(off.wait_s)
        assert not off.due(NOW + off.wait_s - 0.01)
        assert off.due(NOW + off.wait_s)
    assert waits == [1.0, 2.0, 4.0, 5.0]
    off.succeeded()
    assert off.due(NOW)
    off.failed(NOW)
    assert off.wait_s == 1.0
