//! Serves a script from a JSON file until it is killed:
//! `hermes-scripted-server SCRIPT.json [--port N] [--log FILE]`.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
    thread,
};

use anyhow::{Context, bail};
use hermes_testkit::server::{Options, Script, ScriptedServer};

const USAGE: &str = "usage: hermes-scripted-server SCRIPT.json [--port N] [--log FILE]";

fn main() -> anyhow::Result<()> {
    let (path, options) = parse(std::env::args().skip(1))?;
    let text = fs::read_to_string(&path)
        .with_context(|| format!("cannot read the script `{}`", path.display()))?;
    let script: Script = serde_json::from_str(&text)
        .with_context(|| format!("`{}` is not a script", path.display()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let server = runtime
        .block_on(ScriptedServer::start_with(script, &options))
        .context("cannot start the server; is the port taken or the log not writable?")?;
    writeln!(io::stdout(), "listening on {}", server.root_url())?;
    loop {
        thread::park();
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> anyhow::Result<(PathBuf, Options)> {
    let mut script = None;
    let mut options = Options {
        forget_requests: true,
        ..Options::default()
    };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--port" => {
                let port = args.next().context(USAGE)?;
                options.port = port
                    .parse()
                    .with_context(|| format!("`{port}` is not a port"))?;
            }
            "--log" => options.log = Some(args.next().context(USAGE)?.into()),
            _ if script.is_none() && !arg.starts_with('-') => script = Some(arg.into()),
            _ => bail!("`{arg}` is not understood; {USAGE}"),
        }
    }
    Ok((script.context(USAGE)?, options))
}
