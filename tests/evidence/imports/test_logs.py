"""Logs that people have: read, put on one axis, diagnosed as far as they reach."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuwhy.cli import main
from gpuwhy.evidence.imports import dmon, dstat_csv, logs, nvidia_smi_csv, pyspy_raw
from gpuwhy.evidence.imports.text_table import LogError, each_second, number, utc_offset

Output = pytest.CaptureFixture[str]
PUBLIC = Path(__file__).parents[4] / "shared" / "public-data" / "nvidia-smi"

SECONDS = 40
NOON = 1_783_987_200  # 2026-07-14 00:00:00 UTC


def smi(busy: int = 40, every: int = 2) -> str:
    lines = [
        "timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], power.draw [W], "
        "power.limit [W], clocks.current.sm [MHz], clocks.max.sm [MHz], "
        "clocks_event_reasons.active"
    ]
    for second in range(0, SECONDS, every):
        clock = f"2026/07/14 00:00:{second:02}.250"
        lines.append(f"{clock}, 0, GPU-a, NVIDIA H100, {busy} %, 19818 MiB, 320.00 W, 700.00 W, "
                     "1980 MHz, 1980 MHz, 0x0000000000000000")  # fmt: skip
        lines.append(f"{clock}, 1, GPU-b, NVIDIA H100, 0 %, 4 MiB, 70.00 W, 700.00 W, "
                     "345 MHz, 1980 MHz, 0x0000000000000001")  # fmt: skip
    return "\n".join(lines) + "\n"


DSTAT = """"Dstat 0.7.4 CSV output"
"Author:","Dag Wieers",,,,"URL:","http://dag.wieers.com/home-made/dstat/"

"system","total cpu usage",,,,,"dsk/total",,"load avg",,
"time","usr","sys","idl","wai","stl","read","writ","1m","5m","15m"
""" + "".join(f"14-07 00:00:{s:02},90.0,5.0,5.0,0.0,0.0,1000000.0,0.0,8.0,7.0,6.0\n"
              for s in range(SECONDS))  # fmt: skip
LOADER = (
    "<module> (/job/train.py:80);train (/job/train.py:40);"
    "__next__ (/usr/lib/python3/site-packages/torch/utils/data/dataloader.py:630);"
    "_next_data (/usr/lib/python3/site-packages/torch/utils/data/dataloader.py:1300);"
    "_try_get_data (/usr/lib/python3/site-packages/torch/utils/data/dataloader.py:1100);"
    "get (/usr/lib/python3.12/queue.py:180);wait (/usr/lib/python3.12/threading.py:320)"
)
BACKWARD = (
    "<module> (/job/train.py:80);train (/job/train.py:44);"
    "backward (/usr/lib/python3/site-packages/torch/_tensor.py:500);"
    "_engine_run_backward (/usr/lib/python3/site-packages/torch/autograd/graph.py:823)"
)
PY_SPY = f"{LOADER} 700\n{BACKWARD} 300\n"
DMON = """#Date       Time        gpu    pwr  gtemp     sm    mem   mclk   pclk
#YYYYMMDD   HH:MM:SS    Idx      W      C      %      %    MHz    MHz
""" + "".join(f" 20260714   00:00:{s:02}      0    631     63     80     10   2619   1980\n"
              for s in range(SECONDS))  # fmt: skip


def test_all_of_them_on_one_axis(tmp_path: Path, capsys: Output) -> None:
    files = []
    for name, text in (("gpu.csv", smi()), ("host.csv", DSTAT), ("stacks.raw", PY_SPY)):
        (tmp_path / name).write_text(text)
        files.append(str(tmp_path / name))
    assert main(["trace", "--json", *files]) == 0
    made = json.loads(capsys.readouterr().out)
    used, unused = made["ranks"]
    assert (used["uuid"], used["cause"]) == ("GPU-a", "data")
    assert used["accounts"]["compute"] == pytest.approx(0.4, abs=0.02)
    assert (unused["uuid"], unused["run"]) == ("GPU-b", None)
    signals = [blind["signal"] for blind in used["cannot_see"]]
    assert {"time zone", "processes", "stack times"} <= set(signals)


def test_a_gpu_log_alone_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(smi())
    made = logs.diagnose([(tmp_path / "gpu.csv", "nvidia-smi")])
    assert made["gpus"][0]["cause"] == "unknown"
    assert "stacks" in [blind["signal"] for blind in made["gpus"][0]["cannot_see"]]
    assert made["window"]["start"] == "2026-07-14T00:00:00Z"


def test_a_busy_gpu_is_healthy(tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(smi(busy=99))
    assert logs.diagnose([(tmp_path / "gpu.csv", "nvidia-smi")])["gpus"][0]["cause"] == "none"


def test_local_times(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "gpu.csv").write_text(smi())
    assert main(["trace", "--utc-offset", "+02:00", str(tmp_path / "gpu.csv")]) == 0
    assert "2026-07-13 22:00:00" in capsys.readouterr().out


def test_fields_of_nvidia_smi() -> None:
    seen = nvidia_smi_csv.parse(smi(), "a.csv", 0.0)
    info = next(s for s in seen if s["kind"] == "gpu_info" and s["uuid"] == "GPU-a")
    assert (info["gpu"], info["name"]) == (0, "NVIDIA H100")
    sample = next(s for s in seen if s["kind"] == "gpu" and s["uuid"] == "GPU-a")
    assert sample == {
        "kind": "gpu", "uuid": "GPU-a", "t": NOON + 0.25, "utilization": 0.4,
        "memory_used": 19818 << 20, "power_mean_w": 320.0, "sm_mhz": 1980.0, "reasons": 0,
    }  # fmt: skip
    limits = next(s for s in seen if s["kind"] == "gpu_limits")
    assert (limits["power_limit_w"], limits["max_sm_mhz"]) == (700.0, 1980.0)


def test_without_units_in_the_cells() -> None:
    text = "timestamp, index, utilization.gpu [%], memory.used [MiB]\n" + "".join(
        f"2026/07/14 00:00:0{s}.000, 0, 50, 1024\n" for s in range(3)
    )
    sample = next(s for s in nvidia_smi_csv.parse(text, "a", 0.0) if s["kind"] == "gpu")
    assert (sample["utilization"], sample["memory_used"]) == (0.5, 1 << 30)


def test_what_a_card_does_not_tell_is_absent() -> None:
    text = "timestamp, uuid, utilization.gpu [%], power.draw [W]\n2026/07/14 00:00:00.000, G, [N/A], 300.00 W\n"  # noqa: E501
    sample = next(s for s in nvidia_smi_csv.parse(text, "a", 0.0) if s["kind"] == "gpu")
    assert "utilization" not in sample


def test_dmon() -> None:
    seen = [s for s in dmon.parse(DMON, "a", 0.0, 0.0) if s["kind"] == "gpu"]
    assert len(seen) == SECONDS
    assert seen[0]["t"] == NOON
    assert seen[0]["utilization"] == pytest.approx(0.8)
    assert seen[0]["power_w"] == 631.0


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="the published captures do not lie there")
def test_dmon_of_a_real_card() -> None:
    text = (PUBLIC / "nvidia-h100-80gb-hbm3__590.48.01.txt").read_text()
    part = text[text.index("# load :: dmon") :]
    table = part[part.index("# gpu ") : part.index("# capabilities ::")]
    seen = [s for s in dmon.parse(table, "a", 0.0, 1_000.0) if s["kind"] == "gpu"]
    assert [s["t"] for s in seen] == [996.0, 997.0, 998.0, 999.0, 1_000.0]
    assert all(s["utilization"] == 1.0 and s["sm_mhz"] == 1980 for s in seen)


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="the published captures do not lie there")
def test_every_field_of_a_real_card() -> None:
    text = (PUBLIC / "nvidia-h100-80gb-hbm3__590.48.01.txt").read_text()
    part = text[text.index("# load :: query-gpu") :]
    table = part[part.index("timestamp, ") :].split("\n\n")[0]
    sample = next(s for s in nvidia_smi_csv.parse(table, "a", 0.0) if s["kind"] == "gpu")
    assert 0.9 <= sample["utilization"] <= 1.0
    assert sample["memory_used"] > 1 << 30
    assert sample["power_w"] > 100


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="the published captures do not lie there")
def test_every_table_of_real_cards_is_told_or_refused(tmp_path: Path, capsys: Output) -> None:
    told = 0
    for card in PUBLIC.glob("*.txt"):
        for part in card.read_text().split("#" * 80):
            path = tmp_path / "a.txt"
            path.write_text(part.strip("\n") + "\n")
            status = main(["trace", "--json", str(path)])
            shown = capsys.readouterr()
            assert status in (0, 2), shown.err
            told += status == 0
    assert told >= 2 * len(list(PUBLIC.glob("*.txt")))  # dmon, idle and under load


def test_dstat_is_added_up() -> None:
    seen = dstat_csv.parse(DSTAT, "a", 0.0, 2026)
    assert seen[0]["t"] == NOON
    assert seen[9]["cpu_seconds"]["user"] == pytest.approx(9.0)
    assert seen[9]["disk_read_bytes"] == 10_000_000
    assert seen[0]["load1"] == 8.0


def test_stacks_of_several_processes() -> None:
    worker = (
        'process 11:"python train.py";<module> (/job/train.py:80);process 12:"python train.py";'
        "_worker_loop (/x/site-packages/torch/utils/data/_utils/worker.py:300);"
        "fetch (/x/site-packages/torch/utils/data/_utils/fetch.py:50);tokenize (/job/data.py:7) 90"
    )
    (stack,) = pyspy_raw.parse(worker, "a")
    assert stack.process == 12
    assert stack.worker
    assert stack.frames[0] == ["tokenize", "/job/data.py", 7]


@pytest.mark.parametrize(
    ("text", "kind"),
    [(smi(), "nvidia-smi"), (DMON, "dmon"), (DSTAT, "dstat"), (PY_SPY, "py-spy"),
     ("hello\n", None), ("", None), ("# a comment\n", None)],
)  # fmt: skip
def test_kinds(text: str, kind: str | None) -> None:
    assert logs.kind_of(text.encode()) == kind


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("gpu.csv", "index, utilization.gpu [%]\n0, 5 %\n", "no column timestamp"),
        ("gpu.csv", "timestamp, utilization.gpu [%]\nnow, 5 %\n", "no line with a time"),
        ("gpu.txt", "# gpu pwr sm\n# Idx W %\n", "no line of a GPU"),
        ("host.csv", '"Dstat 0.7.4 CSV output"\n', "no line of columns"),
        ("host.csv", DSTAT, "none of these logs is of a GPU"),
        ("gpu.csv", "timestamp, utilization.gpu [%]\n2026/07/14 08:12:38.696, 5 %\n", "a single"),
        ("gpu.csv", "timestamp, gpu_uuid, pid\n2026/07/14 08:12:38.696, a, 1\n", "tells nothing"),
    ],
)
def test_what_is_none(name: str, text: str, message: str, tmp_path: Path, capsys: Output) -> None:
    (tmp_path / name).write_text(text)
    assert main(["trace", str(tmp_path / name)]) == 2
    assert message in capsys.readouterr().err


def test_units_and_offsets() -> None:
    assert number("87 %") == pytest.approx(0.87)
    assert number("[N/A]") is None
    assert number("-") is None
    assert utc_offset("+02:00") == 7200
    assert utc_offset("-0730") == -27000
    assert utc_offset("Z") == 0
    with pytest.raises(ValueError, match=r"\+02:00"):
        utc_offset("CEST")
    with pytest.raises(LogError):
        pyspy_raw.parse("nothing", "a")


def test_a_value_stands_until_the_next_but_not_forever() -> None:
    assert list(each_second([0.0, 3.0])) == [(0, 0.0), (0, 1.0), (0, 2.0), (1, 3.0)]
    assert len(list(each_second([0.0, 1000.0]))) == 16
