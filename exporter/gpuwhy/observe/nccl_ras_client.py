"""One question to a RAS port of NCCL, with a deadline.

Every NCCL job listens for it (on ``localhost:28028`` unless ``NCCL_RAS_ADDR`` says otherwise) and
answers any client that reaches the port; no right over the job is needed.
"""

from __future__ import annotations

import ipaddress
import socket
import time

Address = tuple[str, int]

MOST_BYTES = 16 * 2**20
"""A longer answer is no answer: 4096 ranks take about 2 MB for each communicator."""


class RasError(Exception):
    """``kind``: "silent" (nobody listens), "slow", "broken", "old" (text only), "foreign"."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def query(address: Address, deadline_s: float) -> str:
    """The JSON text of ``VERBOSE STATUS``. Raises RasError, also past ``deadline_s``."""
    if not is_here(address[0]):
        raise RasError("silent", f"{address[0]} is no address of this host: not asked")
    end = time.monotonic() + deadline_s
    try:
        connection = socket.create_connection(address, timeout=deadline_s)
    except TimeoutError:
        raise RasError("slow", f"no connection within {deadline_s:g} s") from None
    except OSError as error:
        raise RasError("silent", f"nobody listens ({error.strerror or error})") from None
    with connection:
        try:
            return _talk(connection, end)
        except TimeoutError:
            raise RasError("slow", f"no full answer within {deadline_s:g} s") from None
        except OSError as error:
            why = error.strerror or str(error)
            raise RasError(
                "broken", f"the connection broke ({why}): a rank may have died"
            ) from None


def is_here(host: str) -> bool:
    """Whether it is this host. A job's environment must not send us anywhere else: names are not
    looked up, and an address must be one of ours."""
    if host in ("localhost", socket.gethostname()):
        return True
    try:
        version = ipaddress.ip_address(host).version
        family = socket.AF_INET6 if version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except (ValueError, OSError):
        return False
    return True


def _talk(connection: socket.socket, end: float) -> str:
    """The handshake line by line (an old server answers errors), then everything to the end."""
    received = bytearray()
    connection.sendall(b"CLIENT PROTOCOL 2\n")
    hello = _line(connection, received, end)
    if not hello.upper().startswith("SERVER PROTOCOL"):
        raise RasError("foreign", "something other than NCCL answers")
    connection.sendall(b"SET FORMAT json\n")
    if _line(connection, received, end).upper() != "OK":
        raise RasError("old", "NCCL there is older than 2.28 and answers in text only")
    connection.sendall(b"VERBOSE STATUS\n")
    while _receive(connection, received, end):
        if len(received) > MOST_BYTES:
            raise RasError("broken", f"an answer of more than {MOST_BYTES >> 20} MiB")
    return received.decode("utf-8", "replace")


def _line(connection: socket.socket, received: bytearray, end: float) -> str:
    """Take the next line out of ``received``, reading on as needed."""
    while b"\n" not in received:
        if len(received) > 4096 or not _receive(connection, received, end):
            raise RasError("foreign", "something other than NCCL answers")
    line, _, rest = bytes(received).partition(b"\n")
    received[:] = rest
    return line.decode("utf-8", "replace").strip()


def _receive(connection: socket.socket, received: bytearray, end: float) -> bool:
    """Read what there is; False at the end of the stream. Raises TimeoutError past ``end``."""
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    connection.settimeout(left)
    chunk = connection.recv(65536)
    received += chunk
    return bool(chunk)
