"""The tools of the conversation, for the script that imports this. Calls may come from threads and from children."""

import itertools as _itertools
import json as _json
import os as _os
import shlex as _shlex
import socket as _socket
import threading as _threading
import time as _time

_numbers = _itertools.count(1)


class ToolError(Exception):
    """A tool said no, or failed; the message says why."""


def json_parse(text):
    """Reads JSON, also with raw line breaks and tabs inside strings."""
    return _json.loads(text, strict=False)


def shell_quote(text):
    """Makes one word of a command line out of any text."""
    return _shlex.quote(str(text))


def retry(fn, max_attempts=3, delay=2):
    """Calls `fn` until it does not raise; waits `delay` seconds, then twice that, and so on."""
    for attempt in range(1, max_attempts + 1):
        try:
            return fn()
        except Exception:
            if attempt == max_attempts:
                raise
            _time.sleep(delay * 2 ** (attempt - 1))


def _call(tool, arguments):
    given = {name: value for name, value in arguments.items() if value is not None}
    call = _json.dumps({"token": _token, "tool": tool, "arguments": given}).encode("ascii")
    answer = _through_socket(call) if "socket" in _way_back else _through_files(call)
    if not answer:
        raise ToolError("no answer: the call was cut off")
    answer = _json.loads(answer.decode("utf-8"))
    if "error" in answer:
        raise ToolError(answer["error"])
    return answer["result"]


def _through_socket(call):
    with _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM) as line:
        line.connect(_way_back["socket"])
        try:
            line.sendall(call + b"\n")
        except BrokenPipeError:
            pass  # It was too long; the answer says so.
        parts = []
        while True:
            part = line.recv(65536)
            if not part:
                return b"".join(parts)
            parts.append(part)


def _through_files(call):
    number = "%d-%d-%d" % (_os.getpid(), _threading.get_ident(), next(_numbers))
    path = _os.path.join(_way_back["folder"], number)
    with open(path + ".new", "wb") as file:
        file.write(call)
    _os.rename(path + ".new", path + ".call")
    pause = 0.01
    while True:
        try:
            with open(path + ".answer", "rb") as file:
                answer = file.read()
        except FileNotFoundError:
            _time.sleep(pause)
            pause = min(pause * 1.5, 0.25)
        else:
            _os.remove(path + ".answer")
            return answer
