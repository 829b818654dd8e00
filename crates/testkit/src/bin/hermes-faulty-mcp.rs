//! An MCP server that fails on command, over HTTP or, with `--stdio`, over stdio.
//! What it can be told is in `hermes_testkit::mcp`.

fn main() -> anyhow::Result<()> {
    hermes_testkit::mcp::run_program(std::env::args().skip(1))
}
