"""Measures the terminal interface through a pseudo-terminal, for scripts/bench."""

import fcntl
import os
import re
import select
import signal
import sqlite3
import statistics
import struct
import subprocess
import termios
import time
from contextlib import closing
from pathlib import Path

CHUNKS = 20_000
MESSAGES = 10_000
LONG_SESSION = 50_000
SERVERS = 20
DEADLINE = 120
ESCAPES = re.compile(rb"\x1b(\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07]*\x07|[=>()][0-9A-Za-z]?)")


def rows(stage, hermes, echo, row, quick):
    """The figures of the interface. `stage` opens a scripted server and a home that uses it."""
    return [
        first_prompt(stage, hermes, row, 7 if quick else 31),
        first_screen(stage, hermes, row, 7 if quick else 31),
        *streaming(stage, hermes, row, quick),
        memory(echo, row, quick),
        *long_resume(stage, hermes, row, 3 if quick else 7),
    ]


def first_prompt(stage, hermes, row, samples):
    """From the start to a key in the input. The key is pressed at once, so it is there as soon as it can be."""
    with stage({"turns": [{"answers": [{"parts": [{"text": "ok"}]}]}], "repeat_last": True}) as place:
        times = []
        for _ in range(samples):
            with closing(Terminal([hermes], place)) as terminal:
                terminal.type("q")
                times.append(terminal.wait_for("› q".encode()) * 1000)
    return row("interface: start to first editable prompt", statistics.median(times), "ms", 60)


def first_screen(stage, hermes, row, samples):
    """From the start to the screen, with servers that never answer."""
    with stage({"turns": [{"answers": [{"parts": [{"text": "ok"}]}]}], "repeat_last": True}) as place:
        settings = Path(place.environment["HERMES_HOME"]) / "config.yaml"
        silent = "".join(f"  silent{number}: {{ command: sleep, args: ['600'] }}\n" for number in range(SERVERS))
        settings.write_text(f"{settings.read_text()}mcp_servers:\n{silent}")
        times = []
        for _ in range(samples):
            with closing(Terminal([hermes], place)) as terminal:
                times.append(terminal.wait_for("/help shows".encode()) * 1000)
    return row(f"interface: start to screen, {SERVERS} MCP servers that never answer", statistics.median(times), "ms", 40)


def streaming(stage, hermes, row, quick):
    """The wait for a key while an answer streams as fast as the clock of the server allows, then CPU at 200 chunks/s."""
    count = CHUNKS // 10 if quick else CHUNKS
    with stage(streamed(count, 1)) as place, closing(Terminal([hermes], place)) as terminal:
        terminal.wait_for("› ".encode())
        terminal.type("go\r")
        terminal.wait_for(b"writing")
        waits, until = [], time.monotonic() + count / 1000  # It takes longer: a chunk a millisecond at most.
        while time.monotonic() < until:
            waits.append(terminal.press(chr(0x4E00 + len(waits) % 5_000)) * 1000)
            if len(waits) % 20 == 0:
                terminal.type("\x15")
            terminal.read_for(0.03)
    with stage(streamed(2_000, 5)) as place, closing(Terminal([hermes], place)) as terminal:
        terminal.wait_for("› ".encode())
        terminal.type("go\r")
        terminal.wait_for(b"writing")
        busy, began = terminal.cpu_seconds(), time.monotonic()
        terminal.read_for(5)
        share = (terminal.cpu_seconds() - busy) / (time.monotonic() - began) * 100
    return [
        row(f"interface: key to screen while {count:,} chunks stream, p99", quantile(waits, 0.99), "ms", 16),
        row("interface: CPU at 200 chunks/s", share, "%", 15),
    ]


def memory(echo, row, quick):
    """What the interface keeps of messages that are over: the growth between 1,000 and 10,000 of them."""
    count = MESSAGES // 5 if quick else MESSAGES
    with closing(Terminal([echo], None)) as terminal:
        terminal.wait_for("› ".encode())
        for number in range(0, count, 2):
            terminal.type(f"message {number}\r")
            terminal.wait_for(f"you said: message {number}".encode())
            if number == 1_000:
                before = terminal.rss_mb()
        growth = terminal.rss_mb() - before
    return row(f"interface: memory that {count:,} messages leave behind", growth, "MB", 1)


def long_resume(stage, hermes, row, samples):
    """From the start to the end of a long conversation on the screen, and a prompt below it."""
    with stage({"turns": [{"answers": [{"parts": [{"text": "The last answer."}]}]}], "repeat_last": True}) as place:
        lengthen(Path(place.environment["HERMES_HOME"]) / "hermes.db", LONG_SESSION)
        times, peaks = [], []
        for _ in range(samples):
            with closing(Terminal([hermes, "-c"], place)) as terminal:
                terminal.type("q")
                terminal.wait_for(b"some more words")
                times.append(terminal.wait_for("› q".encode()) * 1000)
                terminal.read_for(0.5)
                peaks.append(terminal.peak_rss_mb())
    return [
        row(f"interface: a session of {LONG_SESSION:,} messages resumes", statistics.median(times), "ms", 300),
        row("interface: the same, peak RSS", statistics.median(peaks), "MB", 60),
    ]


def streamed(chunks, delay_ms):
    answer = {"parts": [{"text_chunks": chunks}], "faults": {"chunk_delay_ms": delay_ms}}
    return {"turns": [{"when": {"contains": "go"}, "answers": [answer]}, {"answers": [{"parts": [{"text": "ok"}]}]}], "repeat_last": True}


def lengthen(database, messages):
    """Repeats the one exchange of the last session until it is long."""
    with closing(sqlite3.connect(database)) as connection, connection:
        (session,) = connection.execute("SELECT max(number) FROM sessions").fetchone()
        exchange = connection.execute("SELECT session, turn, role, at, text FROM messages WHERE session = ?", (session,)).fetchall()
        exchange = [(*columns, text + " and some more words to read" * 8) for *columns, text in exchange]
        copies = (messages - len(exchange)) // len(exchange)
        connection.executemany("INSERT INTO messages (session, turn, role, at, text) VALUES (?, ?, ?, ?, ?)", exchange * copies)
        connection.execute("UPDATE sessions SET messages = ? WHERE number = ?", (messages, session))


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


class Terminal:
    """A program in a terminal of 80 columns and 24 rows."""

    def __init__(self, command, place):
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = dict(place.environment if place else {"PATH": os.environ["PATH"]}, TERM="xterm-256color", LANG="C.UTF-8")
        self.started = time.monotonic()
        self.output = b""
        self.process = subprocess.Popen(
            command,
            env=environment,
            cwd=place.work if place else "/",
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def close(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self.master)

    def type(self, text):
        os.write(self.master, text.encode())

    def press(self, key):
        """Seconds until a key that was not on the screen is."""
        self.output = b""
        pressed = time.monotonic()
        self.type(key)
        self.wait_for(key.encode())
        return time.monotonic() - pressed

    def wait_for(self, shown):
        """Seconds from the start until this was written to the screen; the end of what was written before counts too."""
        while shown not in ESCAPES.sub(b"", self.output):
            if time.monotonic() - self.started > DEADLINE + 600 or not self.read(DEADLINE):
                raise SystemExit(f"`{shown.decode()}` does not appear; the terminal shows {self.output[-2000:]!r}")
        self.output = self.output[-8192:]
        return time.monotonic() - self.started

    def read(self, seconds):
        ready, _, _ = select.select([self.master], [], [], seconds)
        if ready:
            self.output += os.read(self.master, 65536)
        return bool(ready)

    def read_for(self, seconds):
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.read(left)
            self.output = self.output[-65536:]

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_rss_mb(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) / 1024

    def rss_mb(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024
