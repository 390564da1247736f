"""InfiniBand ports from a tree of files laid out as the kernel does."""

import pytest

from gpuwhy.observe.infiniband import InfinibandSource, link_rate

NOW = 1_790_000_000.0


def write(base, **files):
    for name, content in files.items():
        path = base / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")


@pytest.fixture
def tree(tmp_path):
    """An NDR port, a RoCE port that is down, and a card without counters."""
    write(
        tmp_path / "mlx5_0",
        device__numa_node=1,
        ports__1__state="4: ACTIVE",
        ports__1__rate="400 Gb/sec (4X NDR)",
        ports__1__link_layer="InfiniBand",
        ports__1__counters__port_rcv_data=1000,
        ports__1__counters__port_xmit_data=2**40,
        ports__1__counters__symbol_error=3,
        ports__1__counters__port_rcv_errors=0,
        ports__1__counters__link_downed="N/A (no PMA)",
        ports__1__counters__port_xmit_wait=77,
    )
    write(
        tmp_path / "mlx5_10",
        device__numa_node=-1,
        device__net__eth2__mtu=1500,
        ports__1__state="1: DOWN",
        ports__1__rate="40 Gb/sec (4X QDR)",
        ports__1__link_layer="Ethernet",
        ports__1__hw_counters__out_of_sequence=12,
        ports__1__hw_counters__np_cnp_sent=5,
    )
    write(tmp_path / "odd0", ports__1__state="5: ACTIVE_DEFER", ports__gid="no port")
    return tmp_path


def test_ports(tree):
    *ports, state = InfinibandSource(sysfs=tree).poll(NOW)
    assert ports[0] == {
        "t": NOW,
        "kind": "network_port",
        "device": "mlx5_0",
        "port": 1,
        "state": "ACTIVE",
        "up": True,
        "link_layer": "InfiniBand",
        "rate": 50e9,
        "numa": 1,
        "receive_bytes": 4000,
        "transmit_bytes": 2**42,
        "errors": {"symbol_error": 3, "port_rcv_errors": 0},
        "congestion": {"port_xmit_wait": 77},
    }
    assert ports[1] == {
        "t": NOW,
        "kind": "network_port",
        "device": "mlx5_10",
        "port": 1,
        "state": "DOWN",
        "up": False,
        "link_layer": "Ethernet",
        "rate": 5e9,
        "interfaces": ["eth2"],
        "errors": {"out_of_sequence": 12},
        "congestion": {"np_cnp_sent": 5},
    }
    assert ports[2].keys() == {"t", "kind", "device", "port", "state", "up"}
    assert (state["kind"], state["source"], state["up"]) == ("source", "infiniband", True)


def test_counters_advance(tree):
    source = InfinibandSource(sysfs=tree)
    before = source.poll(NOW)[0]
    write(tree / "mlx5_0", ports__1__counters__port_rcv_data=1500)
    after = source.poll(NOW + 1)[0]
    assert after["receive_bytes"] - before["receive_bytes"] == 2000


def test_a_host_without_a_card_is_no_fault(tmp_path):
    for folder in (tmp_path, tmp_path / "absent"):
        (state,) = InfinibandSource(sysfs=folder).poll(NOW)
        assert (state["up"], "remedy" in state) == (False, False)
        assert state["why"]


def test_a_card_that_goes_and_comes(tree, tmp_path):
    source = InfinibandSource(sysfs=tree)
    source.poll(NOW)
    tree.rename(tmp_path.parent / "away")
    (state,) = source.poll(NOW + 1)
    assert state["up"] is False
    (tmp_path.parent / "away").rename(tree)
    assert source.poll(NOW + 2)[-1]["up"] is True


def test_ports_that_cannot_be_read(tree):
    for path in tree.glob("*/ports/*/state"):
        path.unlink()
        path.mkdir()
    (state,) = InfinibandSource(sysfs=tree).poll(NOW)
    assert (state["up"], "cannot be read" in state["why"]) == (False, True)
    assert state["remedy"]


@pytest.mark.parametrize(
    ("said", "rate"),
    [
        ("2.5 Gb/sec (1X SDR)", 0.3125e9),
        ("800 Gb/sec (4X XDR)", 100e9),
        ("", None),
        ("x", None),
        ("40.. Gb/sec (4X QDR)", None),
        ("9" * 400 + " Gb/sec (4X QDR)", None),
    ],
)
def test_rates(said, rate):
    assert link_rate(said) == rate
