"""The command line: the table of commands, the parser made from it, and one way to fail.

Exit status: 0 answered, 1 nothing to observe or a check failed, 2 bad input or usage.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import logging
import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import gpuwhy
from gpuwhy import interrupts, logs, settings
from gpuwhy.commands import compare, ncu, nsys, trace
from gpuwhy.commands.command import ANSWERED, NOTHING, USAGE, Command, CommandError
from gpuwhy.settings import Option, Settings, SettingsError

log = logging.getLogger(__name__)

_NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What a write to a redirected standard output may end in."""


def _file(parser: argparse.ArgumentParser, meaning: str) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help=meaning)


COMMANDS = (
    Command(
        "diagnose",
        "say why the GPUs of the jobs running here are not busy",
        "Attaches to every training job on this host, watches, and prints for each GPU the cause "
        "of what it loses, with evidence, the line of Python behind it and the next action. "
        "Nothing is changed in the job. Ctrl-C ends the watching early and prints what is known. "
        "On a recording --for takes its end.",
        "gpuwhy diagnose\n"
        "gpuwhy diagnose --gpu 0 --for 1m\n"
        "gpuwhy diagnose --json | jq '.gpus[].cause'\n"
        "gpuwhy diagnose --recording job.gpuwhy.gz --for 20s",
        "gpuwhy.commands.diagnose",
    ),
    Command(
        "record",
        "keep what is observed in a file, to diagnose later or elsewhere",
        "Writes every observation, with its time, to FILE (NAME.gpuwhy.gz) until --for has passed "
        "or until Ctrl-C. The file holds function names, file names and masked command lines of "
        "the jobs; no data, no source text, no environment.",
        "gpuwhy record job.gpuwhy.gz --for 60s",
        "gpuwhy.commands.record",
        lambda parser: _file(parser, "the recording to write, NAME.gpuwhy.gz"),
    ),
    Command(
        "profile",
        "draw a flame graph of a rank and its workers, waits included",
        "Samples the Python stacks of one rank and its workers without stopping them. The suffix "
        "of FILE chooses the form: .svg a flame graph, .json speedscope, .raw or .txt folded "
        "stacks. With one job on the host neither --gpu nor --pid is needed.",
        "gpuwhy profile --gpu 0 --for 60s rank0.svg\ngpuwhy profile --pid 4242 rank0.json",
        "gpuwhy.commands.profile",
        lambda parser: _file(parser, "the file to write: NAME.svg, NAME.json or NAME.raw"),
    ),
    Command(
        "doctor",
        "say what is wrong on this host, what is lost by it, and what mends it",
        "Checks the driver, the rights to watch each job found, and what else gpuwhy relies on. "
        "Changes nothing. Exit status 1 if a check failed.",
        "gpuwhy doctor\nsudo gpuwhy doctor --json",
        "gpuwhy.commands.doctor",
    ),
    Command(
        "serve",
        "run the exporter: /metrics, the page and the JSON API",
        "Watches until stopped and serves /metrics for Prometheus, the page at /, /-/healthy, "
        "/-/ready and /api/v1/.",
        "gpuwhy serve\n"
        "gpuwhy serve --web.listen-address :9877 --web.config.file web.yml\n"
        "gpuwhy serve --recording a.gpuwhy.gz b.gpuwhy.gz --loop",
        "gpuwhy.commands.serve",
    ),
    Command(
        "trace",
        "turn a profiler's trace into accounts, evidence and a next action",
        "Reads traces of the PyTorch profiler, Nsight Systems and Nsight Compute: where the GPU's "
        "time went, who was waited for, kernels, copies, collectives, steps. Several files are the "
        "ranks of one run. Needs no GPU.",
        "gpuwhy trace rank0.pt.trace.json.gz rank1.pt.trace.json.gz\n"
        "gpuwhy trace report.nsys-rep --html report.html\n"
        "gpuwhy trace kernels.csv    # of: ncu --csv ...",
        "gpuwhy.commands.trace",
        trace.positionals,
    ),
    Command(
        "compare",
        "tell what a change did: step time, accounts and power before and after",
        "Compares two recordings or two traces, with confidence intervals, and says what else "
        "differs between them. Needs no GPU.",
        "gpuwhy compare before.gpuwhy.gz after.gpuwhy.gz\n"
        "gpuwhy compare old/rank0.json.gz new/rank0.json.gz --fail-if-slower 5%",
        "gpuwhy.commands.compare",
        compare.positionals,
    ),
    Command(
        "nsys",
        "print the Nsight Systems command for a job; starts nothing",
        "Prints what to paste into a shell to record a timeline of a job, with what it costs. The "
        "job has to be started anew under nsys: gpuwhy starts and stops nothing.",
        "gpuwhy nsys -- torchrun --nproc-per-node 8 train.py\n"
        "gpuwhy nsys --gpu 0 --for 30s --delay 2m\n"
        "gpuwhy nsys --steps 100-110 -- python train.py",
        "gpuwhy.commands.nsys",
        nsys.positionals,
    ),
    Command(
        "ncu",
        "print the Nsight Compute command for a job's kernels; starts nothing",
        "Prints what to paste into a shell to take single kernels of a job apart, with what it "
        "costs. The job has to be started anew under ncu: gpuwhy starts and stops nothing.",
        "gpuwhy ncu --trace rank0.pt.trace.json.gz -- python train.py\n"
        "gpuwhy ncu --pid 4242 --kernels layer_norm softmax --launches 10",
        "gpuwhy.commands.ncu",
        ncu.positionals,
    ),
    Command(
        "alerting",
        "make Alertmanager's configuration from a small settings file",
        "`render` reads who is to be told and prints Alertmanager's configuration.",
        "gpuwhy alerting render --help",
        "gpuwhy.commands.alerting",
        lambda parser: parser.add_argument(
            "rest", nargs=argparse.REMAINDER, metavar="render ...", help="see `render --help`"
        ),
    ),
)
"""Adding a command: its module under ``commands``, a row here, its options in ``settings``."""

DESCRIPTION = """\
Says why a training job's GPUs are not busy with it: which cause, how much GPU
time it costs, the line of Python or the limit behind it, and what to do next.
It watches from outside: the job is neither changed nor restarted nor stopped.
"""

FOOT = """\
Options are taken from the command line, then the environment (GPUWHY_...), then
the configuration file. `gpuwhy COMMAND --help` tells the options of a command.

exit status: 0 answered, 1 nothing to observe or a check failed, 2 bad usage
"""


class Parser(argparse.ArgumentParser):
    """argparse, with messages that say where to read on."""

    def __init__(self, **more: Any) -> None:
        more.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **more)

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message}\n{self.prog} --help tells the options\n")


def build_parser() -> Parser:
    """The parser of the whole command line."""
    parser = Parser(prog="gpuwhy", description=DESCRIPTION, epilog=FOOT)
    parser.add_argument("--version", action="version", version=f"gpuwhy {gpuwhy.__version__}")
    _common(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name,
            help=command.summary,
            description=textwrap.fill(command.description, 78),
            epilog="examples:\n  " + command.examples.replace("\n", "\n  "),
        )
        if command.positionals:
            command.positionals(sub)
        for field, option in settings.options_of(command.name).items():
            if field not in COMMON:
                _add(sub, field, option, command.name)
        _common(sub)
    return parser


COMMON = ("log_level",)


def _common(parser: argparse.ArgumentParser) -> None:
    """What every command takes, before or after its name."""
    group = parser.add_argument_group("everywhere")
    group.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        default=argparse.SUPPRESS,
        help=f"read options from a YAML file ({settings.CONFIG_VARIABLE})",
    )
    group.add_argument(
        "--config.check",
        dest="config_check",
        action="store_true",
        default=argparse.SUPPRESS,
        help="check the options, environment and configuration file, and do nothing else",
    )
    for field in COMMON:
        _add(group, field, settings.OPTIONS[field])


def _add(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup,
    field: str,
    option: Option,
    command: str = "",
) -> None:
    shown = option.default_of(command)
    default = f"default: {shown}; " if shown else ""
    meaning = f"{option.meaning} ({default}{option.variable})".replace("%", "%%")
    flag = f"--{option.name}"
    if option.metavar is None:
        parser.add_argument(
            flag, dest=field, action="store_true", default=argparse.SUPPRESS, help=meaning
        )
    elif option.many:
        parser.add_argument(
            flag,
            dest=field,
            metavar=option.metavar,
            nargs="+",
            action="extend",
            default=argparse.SUPPRESS,
            help=meaning,
        )
    else:
        parser.add_argument(
            flag, dest=field, metavar=option.metavar, default=argparse.SUPPRESS, help=meaning
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    _prepare_streams()
    parser = build_parser()
    arguments = parser.parse_args(argv)
    try:
        return _run(parser, arguments)
    except SettingsError as error:
        return _fail(str(error), USAGE)
    except CommandError as error:
        return _fail(str(error), error.status)
    except KeyboardInterrupt:
        return interrupts.INTERRUPTED
    except BrokenPipeError:  # `gpuwhy ... | head`: the reader has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ANSWERED
    except OSError as error:
        if error.filename is None and error.errno in _NOT_WRITTEN:
            return _fail(f"cannot write the output: {error.strerror}", NOTHING)
        return _unexpected(error)
    except Exception as error:
        return _unexpected(error)


def _unexpected(error: Exception) -> int:
    log.debug("unexpected failure", exc_info=True)
    return _fail(
        f"unexpected failure: {type(error).__name__}: {error}; run again with "
        "--log.level debug for the details, and please report them",
        NOTHING,
    )


def _prepare_streams() -> None:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us: `gpuwhy ... >&-`
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # foreign names, any locale


def _run(parser: Parser, arguments: argparse.Namespace) -> int:
    given = vars(arguments)
    flags = {field: given[field] for field in settings.OPTIONS if field in given}
    loaded = settings.load(flags, os.environ, given.get("config"))
    logs.setup(loaded.log_level)
    if given.get("config_check"):
        return _check_config(loaded, given.get("config"))
    if arguments.command is None:
        parser.print_help()
        return USAGE
    module = next(c.module for c in COMMANDS if c.name == arguments.command)
    command = importlib.import_module(module)
    interrupts.raise_as_usual()
    return int(command.run(arguments, loaded))


def _check_config(loaded: Settings, config: Path | None) -> int:
    """Say that the settings hold; the files that they name are read as well."""
    from gpuwhy.commands import serve

    serve.check_files(loaded)
    path = config or os.environ.get(settings.CONFIG_VARIABLE)
    print(f"{path}: good" if path else "good (no configuration file given)")
    return ANSWERED


def _fail(message: str, status: int) -> int:
    from gpuwhy.evidence.terminal import printable

    for line in message.splitlines() or [""]:
        print(f"gpuwhy: {printable(line)}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
