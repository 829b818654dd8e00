//! The program `hermes-faulty-mcp`, as a function so that other crates can build it as theirs.

use std::{
    io::{self, Write},
    path::PathBuf,
    process, thread,
};

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;

use super::{FaultyMcp, Options, ledger::Ledger, peer::Peer, stdio, stdio::StdioOptions};

const USAGE: &str = "usage: hermes-faulty-mcp [--port N | --stdio [--control FILE] [--log FILE]] \
    [--ledger FILE] [--settings JSON] [--fault JSON]...";

#[derive(Default)]
struct Args {
    is_stdio: bool,
    options: Options,
    control: Option<PathBuf>,
    log: Option<PathBuf>,
    /// Rules, for either transport.
    faults: Vec<String>,
}

/// Runs the program with these arguments, without the program's name, until it is killed or, over
/// stdio, has nothing more to read.
pub fn run(args: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let args = parse(args)?;
    if args.is_stdio {
        serve_stdio(args)
    } else {
        serve_http(&args)
    }
}

fn serve_http(args: &Args) -> anyhow::Result<()> {
    let server = FaultyMcp::start_with(&args.options)
        .context("cannot start the server; is the port taken or the ledger not writable?")?;
    for fault in &args.faults {
        server.fail(from_json::<super::Rule<_>>("a fault", fault)?);
    }
    writeln!(io::stdout(), "listening on {}", server.url())?;
    loop {
        thread::park();
    }
}

fn serve_stdio(args: Args) -> anyhow::Result<()> {
    let ledger = args.options.ledger.as_deref().map(Ledger::open).transpose();
    let ledger = ledger
        .context("cannot open the ledger")?
        .unwrap_or_default();
    let mut stdio = StdioOptions {
        control: args.control,
        log: args.log,
        ..StdioOptions::default()
    };
    for fault in &args.faults {
        stdio.rules.add(from_json("a fault", fault)?);
    }
    let peer = Peer::new(args.options.settings, ledger);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(stdio::serve(peer, stdio))?;
    // At once: the runtime would wait for a thread that may still be reading stdin.
    process::exit(0)
}

fn parse(mut args: impl Iterator<Item = String>) -> anyhow::Result<Args> {
    let mut parsed = Args::default();
    while let Some(arg) = args.next() {
        let mut value = || args.next().context(USAGE);
        match arg.as_str() {
            "--stdio" => parsed.is_stdio = true,
            "--port" => {
                let port = value()?;
                let parsed_port = port.parse();
                parsed.options.port =
                    parsed_port.with_context(|| format!("`{port}` is not a port"))?;
            }
            "--ledger" => parsed.options.ledger = Some(value()?.into()),
            "--settings" => parsed.options.settings = from_json("settings", &value()?)?,
            "--control" => parsed.control = Some(value()?.into()),
            "--log" => parsed.log = Some(value()?.into()),
            "--fault" => parsed.faults.push(value()?),
            _ => bail!("`{arg}` is not understood; {USAGE}"),
        }
    }
    Ok(parsed)
}

fn from_json<T: DeserializeOwned>(what: &str, json: &str) -> anyhow::Result<T> {
    serde_json::from_str(json).with_context(|| format!("`{json}` is not {what}"))
}
