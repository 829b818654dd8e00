-- Schema 6: what MCP servers offered when they were last asked.

CREATE TABLE mcp_offers (
    server   TEXT NOT NULL,
    settings TEXT NOT NULL, -- tells the settings it was asked with from others
    offer    TEXT NOT NULL, -- JSON
    seen     INTEGER NOT NULL, -- milliseconds since 1970
    PRIMARY KEY (server, settings)
) STRICT, WITHOUT ROWID;
