//! A start that fails, early or late, ends nothing that it has found and leaves nothing that it has begun.

use std::{io, os::unix::process::CommandExt as _, process::Command};

use anyhow::{Context as _, Result, ensure};
use limiter_lab::{HOST_INTERFACE, Limiter};
use nix::sys::signal::Signal;

use crate::common::{
    Running, Site, assert_no_traces, on_host, program_on, start, start_logged, to_its_end,
};

const BRIDGE: &str = "br0";

/// A bridge, which has no native XDP.
fn add_bridge(site: &Site) -> Result<()> {
    let words = ["link", "add", BRIDGE, "up", "type", "bridge"];
    let output = site.host.command("ip").args(words).output()?;
    ensure!(output.status.success(), "{output:?}");
    Ok(())
}

/// Leaves enforcement on interfaces to the kernel.
fn keep(limiter: &Limiter<'_>, words: &str) -> Result<()> {
    let arguments: Vec<&str> = words.split(' ').collect();
    let (daemon, _log) = start_logged(limiter, &arguments)?;
    assert_eq!(daemon.end(Signal::SIGTERM)?.code(), Some(0));
    Ok(())
}

/// Starts what must fail, and returns its log.
fn fails(limiter: &Limiter<'_>, words: &str) -> Result<String> {
    let mut command = limiter.command(&["run"]);
    let output = to_its_end(command.args(words.split(' ')))?;
    let log = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(1), "{log}");
    Ok(log)
}

#[test]
fn what_was_kept_stays_where_another_interface_refuses() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    keep(&limiter, "--iface lim0 --rate 1/h --burst 3 --on-exit keep")?;
    let program = program_on(&site.host, HOST_INTERFACE)?.context("it was kept")?;
    add_bridge(&site)?;
    for both in ["lim0,br0", "br0,lim0"] {
        let log = fails(&limiter, &format!("--iface {both} --rate 1/h --burst 3"))?;
        assert!(log.contains("--iface br0: the driver refuses native XDP"));
        let after = program_on(&site.host, HOST_INTERFACE)?;
        assert_eq!(after, Some(program), "{both}:\n{log}");
        assert_eq!(program_on(&site.host, BRIDGE)?, None, "{both}:\n{log}");
    }
    assert_eq!(limiter.output(&["unload"])?.status.code(), Some(0));
    assert_no_traces(&site, &limiter, "unload")
}

#[test]
fn what_was_kept_comes_back_where_another_mode_is_refused() -> Result<()> {
    let site = Site::new()?;
    add_bridge(&site)?;
    let limiter = site.limiter()?;
    let both = "--iface lim0,br0 --rate 1/h --burst 3";
    keep(&limiter, &format!("{both} --attach generic --on-exit keep"))?;
    let programs = || -> Result<_> {
        Ok((
            program_on(&site.host, HOST_INTERFACE)?.context("gone")?,
            program_on(&site.host, BRIDGE)?.context("gone")?,
        ))
    };
    let before = programs()?;
    let log = fails(&limiter, both)?;
    assert_eq!(programs()?, before, "{log}");
    assert!(log.contains("is back"), "{log}");
    // They are as good as ever: the next daemon takes them over.
    let arguments: Vec<&str> = both.split(' ').chain(["--attach", "generic"]).collect();
    let (daemon, log) = start_logged(&limiter, &arguments)?;
    assert!(log.line(&["took over", "br0"]).is_some(), "{}", log.text());
    assert_eq!(daemon.end(Signal::SIGINT)?.code(), Some(0));
    assert_eq!(program_on(&site.host, BRIDGE)?, None);
    assert_no_traces(&site, &limiter, "the daemon that followed")
}

/// Lets a process open only so many files.
fn with_files(command: &mut Command, count: u64) -> &mut Command {
    let limit = libc::rlimit {
        rlim_cur: count,
        rlim_max: count,
    };
    let set = move || {
        // SAFETY: the limit lives until the call returns.
        match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec the closure makes one system call, and allocates nothing.
    unsafe { command.pre_exec(set) }
}

/// Starts daemons with one file more each, so that each next one fails a little later, until one is ready.
fn run_out_of_files_at_every_moment(
    limiter: &Limiter<'_>,
    mut after: impl FnMut(&str) -> Result<()>,
) -> Result<()> {
    let mut late = 0;
    for count in 4..200 {
        let mut command = limiter.command(&["run"]);
        command.args(on_host("--rate 1/h --burst 3"));
        let mut daemon = Running::start(with_files(&mut command, count))?;
        while daemon.goes_on()? && daemon.log.line(&[" ready "]).is_none() {}
        let log = daemon.log.text();
        if daemon.goes_on()? {
            daemon.signal(Signal::SIGINT)?;
            daemon.wait()?;
            assert!(late > 3, "it failed while it was loading, too");
            return Ok(());
        }
        let when = format!("with {count} files:\n{log}");
        if log.contains("loading") {
            late += 1;
            let explained = log.contains(&format!("may open {count} files"));
            assert!(explained && !log.contains("driver"), "{when}");
        }
        after(&when)?;
    }
    anyhow::bail!("it is never ready")
}

#[test]
fn whenever_files_run_out_nothing_is_left() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    run_out_of_files_at_every_moment(&limiter, |when| assert_no_traces(&site, &limiter, when))
}

#[test]
fn whenever_files_run_out_what_was_kept_stays() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let daemon = start(&limiter, "--rate 1/h --burst 3 --on-exit keep")?;
    daemon.end(Signal::SIGTERM)?;
    let program = program_on(&site.host, HOST_INTERFACE)?;
    run_out_of_files_at_every_moment(&limiter, |when| {
        assert_eq!(program_on(&site.host, HOST_INTERFACE)?, program, "{when}");
        Ok(())
    })
}
