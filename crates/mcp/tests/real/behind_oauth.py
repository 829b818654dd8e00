"""A FastMCP server with its own OAuth provider, which approves every login at once.

Arguments: a port, and how many seconds its access tokens live.
"""

import sys

from fastmcp import FastMCP
from fastmcp.server.auth.auth import ClientRegistrationOptions
from fastmcp.server.auth.providers import in_memory

port, lifetime = map(int, sys.argv[1:])
in_memory.DEFAULT_ACCESS_TOKEN_EXPIRY_SECONDS = lifetime

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


server.run(transport="http", host="127.0.0.1", port=port, show_banner=False, log_level="warning")
