"""A server made with the official Python SDK, or with FastMCP, whichever the interpreter has.

    server.py LEDGER stdio|PORT

Its one tool, `append`, writes a line to the ledger: the proof of how often it was executed. SIGUSR1 makes it forget its
sessions, as servers do that are short of memory.
"""

import gc
import signal
import sys

ledger, where = sys.argv[1:]


def framework():
    try:
        from fastmcp import FastMCP

        return FastMCP("real")
    except ImportError:
        pass
    try:
        from mcp.server import MCPServer  # from 2.0

        return MCPServer("real")
    except ImportError:
        from mcp.server.fastmcp import FastMCP  # before 2.0

        return FastMCP("real")


def forget_sessions(*_):
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    for manager in gc.get_objects():
        if isinstance(manager, StreamableHTTPSessionManager):
            manager._server_instances.clear()


server = framework()


@server.tool()
def append(word: str) -> str:
    """Appends a word to the ledger. Doing it twice is a mistake."""
    with open(ledger, "a") as file:
        file.write(f"{word}\n")
    return f"appended {word}"


if where == "stdio":
    server.run()
else:
    import uvicorn

    signal.signal(signal.SIGUSR1, forget_sessions)
    app = server.http_app() if hasattr(server, "http_app") else server.streamable_http_app()
    uvicorn.run(app, host="127.0.0.1", port=int(where), log_level="warning", timeout_graceful_shutdown=1)
