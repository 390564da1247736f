"""A source speaks at first, on a change, and every ten seconds."""

from gpuwhy.observe.source_state import SourceState

NOW = 1_790_000_000.0


def test_when_it_speaks():
    state = SourceState("gpm", uuid="GPU-1")
    (first,) = state.report(NOW, False, "why", "remedy", reads=3)
    assert first == {
        "t": NOW,
        "kind": "source",
        "source": "gpm",
        "up": False,
        "uuid": "GPU-1",
        "why": "why",
        "remedy": "remedy",
        "reads": 3,
    }
    assert state.report(NOW + 1, False, "why", "remedy", reads=4) == [], "figures are no news"
    assert state.report(NOW + 2, False, "another why", "remedy")
    (up,) = state.report(NOW + 3, True)
    assert up == {"t": NOW + 3, "kind": "source", "source": "gpm", "up": True, "uuid": "GPU-1"}
    assert state.report(NOW + 12.9, True) == []
    assert state.report(NOW + 13, True)
    assert state.report(NOW - 3600, True), "the clock was set back"


def test_a_change_of_what_is_missing_is_news():
    state = SourceState("nvml")
    state.report(NOW, True, missing=["power_w"])
    assert state.report(NOW + 1, True, missing=["power_w"]) == []
    assert state.report(NOW + 1, True, missing=["power_w", "reasons"])
    assert "lost_s" not in state.report(NOW + 2, True, lost_s=None)[0]
