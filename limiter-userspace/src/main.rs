//! The binary `limiter`.

use std::{
    io::{self, ErrorKind, Write as _},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use clap::{CommandFactory as _, Parser as _, error::ErrorKind as ClapError};
use limiter_userspace::{
    audit::Audit,
    changes::{
        answer::{Bans, Changed, Overrides},
        request::{BanRequest, MonitorRequest, ReloadRequest, UnbanRequest},
    },
    check,
    cli::{Cli, Command, ExplainArgs, Proto, TopArgs},
    client::{Client, PATIENCE},
    commands::{AuditArgs, FileArgs, OverrideAction, PolicyCommand, StateArgs},
    daemon, files, logging,
    report::{PolicyLines, Status, Top},
    settings::{Settings, UsageError},
    show,
    signals::Blocked,
    unload,
};
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};

/// Exit codes: 0 done, 1 refused or failed, 2 wrong usage.
fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("limiter: {error:#}");
            if error.is::<UsageError>() {
                ExitCode::from(2)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// Help goes out as it is; of a bad value, one line is enough.
fn usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ClapError::ValueValidation | ClapError::InvalidValue => {
            let text = error.to_string();
            // The second line lists the possible values, where there are any.
            let said: Vec<&str> = text
                .lines()
                .take(2)
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .collect();
            let said = said.join(" ");
            eprintln!("limiter: {}", said.strip_prefix("error: ").unwrap_or(&said));
            ExitCode::from(2)
        }
        _ => {
            // Help that cannot be printed has nobody to read it.
            drop(error.print());
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
        }
    }
}

fn run(
    Cli {
        socket,
        pin_dir,
        state: StateArgs { state_dir },
        command,
    }: Cli,
) -> Result<()> {
    if let Command::Completions { shell } = command {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "limiter", &mut script);
        return Ok(io::stdout().write_all(&script)?);
    }
    let client = Client::new(&socket, &pin_dir);
    match command {
        Command::Run(args) => {
            let settings = Settings::new(*args)?;
            logging::start();
            // Before any other thread is there, since each thread may take a signal.
            let signals = Blocked::block()?;
            runtime()?
                .block_on(daemon::run(
                    settings, &socket, &pin_dir, &state_dir, signals,
                ))
                .map_err(files::say_limit)
        }
        Command::Status(output) => {
            let status: Status = runtime()?.block_on(client.get("/v1/status", PATIENCE))?;
            print(output.json, &status, show::status)
        }
        Command::Top(TopArgs { interval, json }) => {
            let path = format!("/v1/top?interval_ms={}", interval * 1000);
            // Reading a large table takes seconds, too.
            let patience = Duration::from_secs(interval) + 6 * PATIENCE;
            let top: Top = runtime()?.block_on(client.get(&path, patience))?;
            print(json, &top, show::top)
        }
        Command::Explain(args) => {
            let explanation = runtime()?.block_on(client.get(&question(&args)?, PATIENCE))?;
            print(args.json, &explanation, show::explanation)
        }
        Command::Unload => {
            let unloaded = runtime()?.block_on(unload::unload(client, &socket, &pin_dir))?;
            print(false, &unloaded, show::unloaded)?;
            if !unloaded.failed.is_empty() {
                bail!("enforcement may go on: {}", unloaded.failed.join("; "));
            }
            Ok(())
        }
        Command::Policy(command) => policy(command, client),
        Command::Completions { .. } => unreachable!("handled above"),
    }
}

/// A change may have to wait for a policy of a million prefixes that is being compiled.
const CHANGE_PATIENCE: Duration = Duration::from_secs(60);

fn policy(command: PolicyCommand, client: Client<'_>) -> Result<()> {
    match command {
        PolicyCommand::Check(FileArgs { file }) => check::check(&file, &mut io::stdout()),
        PolicyCommand::Diff(FileArgs { file }) => {
            let running: PolicyLines = runtime()?.block_on(client.get("/v1/policy", PATIENCE))?;
            check::diff(&file, &running.lines, &mut io::stdout())
        }
        PolicyCommand::Reload(args) => change(client, "/v1/reload", &ReloadRequest::from(args)),
        PolicyCommand::Ban(args) => change(client, "/v1/ban", &BanRequest::from(args)),
        PolicyCommand::Unban(args) => change(client, "/v1/unban", &UnbanRequest::from(args)),
        PolicyCommand::Bans(output) => {
            let bans: Bans = runtime()?.block_on(client.get("/v1/bans", PATIENCE))?;
            print(output.json, &bans, show::changes::bans)
        }
        PolicyCommand::Override(args) => match OverrideAction::from(args) {
            OverrideAction::Make(request) => change(client, "/v1/override", &request),
            OverrideAction::Remove(request) => change(client, "/v1/override/remove", &request),
        },
        PolicyCommand::Overrides(output) => {
            let overrides: Overrides =
                runtime()?.block_on(client.get("/v1/overrides", PATIENCE))?;
            print(output.json, &overrides, show::changes::overrides)
        }
        PolicyCommand::Monitor(args) => change(client, "/v1/monitor", &MonitorRequest::from(args)),
        PolicyCommand::Audit(AuditArgs { last, what, json }) => {
            let what = what.map_or_else(String::new, |what| format!("&what={}", what.name()));
            let path = format!("/v1/audit?last={last}{what}");
            let audit: Audit = runtime()?.block_on(client.get(&path, PATIENCE))?;
            print(json, &audit, show::audit::audit)
        }
    }
}

fn change<B: Serialize>(client: Client<'_>, path: &str, body: &B) -> Result<()> {
    let changed: Changed = runtime()?.block_on(client.post(path, body, CHANGE_PATIENCE))?;
    print(false, &changed, show::changes::changed)
}

fn runtime() -> Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start")
}

fn question(args: &ExplainArgs) -> Result<String> {
    let ExplainArgs {
        address,
        proto,
        dport,
        sport,
        syn,
        to,
        json: _,
    } = args;
    let proto = match (proto, syn) {
        (Some(Proto::Tcp), _) | (None, true) => "tcp",
        (Some(Proto::Udp | Proto::Icmp), true) => {
            bail!(UsageError(
                "--syn: only TCP has connection attempts; write --proto tcp, or leave --proto out"
                    .to_owned()
            ))
        }
        (Some(Proto::Udp) | None, false) => "udp",
        (Some(Proto::Icmp), false) => "icmp",
    };
    let to = to.map_or_else(String::new, |to| format!("&to={to}"));
    Ok(format!(
        "/v1/explain?address={address}&proto={proto}&dport={dport}&sport={sport}&syn={syn}{to}"
    ))
}

fn print<T: Serialize>(json: bool, value: &T, show: fn(&T) -> String) -> Result<()> {
    let text = if json {
        serde_json::to_string_pretty(value)? + "\n"
    } else {
        show(value)
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
