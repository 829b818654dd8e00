"""A FastMCP server with its own OAuth provider, which approves every login at once.

Argument: how many seconds its access tokens live.
"""

import socket
import sys

from fastmcp import FastMCP
from fastmcp.server.auth.auth import ClientRegistrationOptions
from fastmcp.server.auth.providers import in_memory

in_memory.DEFAULT_ACCESS_TOKEN_EXPIRY_SECONDS = int(sys.argv[1])

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]

base = f"http://127.0.0.1:{port}"
auth = in_memory.InMemoryOAuthProvider(
    base_url=base,
    client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["read"], default_scopes=["read"]),
    required_scopes=["read"],
)
server = FastMCP("behind-oauth", auth=auth)


@server.tool
def append(word: str) -> str:
    return f"appended {word}"


print(f"{base}/mcp", flush=True)
server.run(transport="http", host="127.0.0.1", port=port, show_banner=False, log_level="warning")
