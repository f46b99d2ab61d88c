//! Signals that end a daemon, and what it says then.

use anyhow::{Context as _, Result};
use limiter_lab::{HOST_INTERFACE, HOST_V4, NET_INTERFACE, Wire, frame::Frame};
use nix::sys::signal::Signal;

use crate::common::{
    ATTACKER, DISCARD, Site, assert_no_traces, at_rest, on_host, program_on, start, start_logged,
    status, wait_until,
};

/// The number behind `key=` in a line of a log.
fn number(line: &str, key: &str) -> Result<u64> {
    let (_, rest) = line
        .split_once(&format!(" {key}="))
        .with_context(|| format!("no {key} in: {line}"))?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end]
        .parse()
        .with_context(|| format!("read {key} of: {line}"))
}

fn ends_without_a_trace(signal: Signal, words: &str) -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let words = format!("--rate 1/h --burst 3 {words}");
    let (daemon, log) = start_logged(&limiter, &on_host(&words))?;
    assert!(program_on(&site.host, HOST_INTERFACE)?.is_some());
    let frame = Frame::ipv4(ATTACKER, HOST_V4).udp(1234, DISCARD).build();
    Wire::open(&site.net, NET_INTERFACE)?.send_all(&vec![frame; 10])?;
    at_rest(&limiter)?;
    assert_eq!(
        daemon.end(signal)?.code(),
        Some(0),
        "{signal}:\n{}",
        log.text()
    );
    assert_no_traces(&site, &limiter, signal.as_str())?;
    let detached = format!("detached {HOST_INTERFACE}");
    assert!(log.line(&[&detached]).is_some(), "{}", log.text());
    let counted = log
        .line(&["counted", HOST_INTERFACE])
        .with_context(|| format!("the log does not say what was counted:\n{}", log.text()))?;
    for (key, expected) in [
        ("seen", 10),
        ("passed", 3),
        ("dropped", 7),
        ("would_drop", 0),
    ] {
        assert_eq!(number(&counted, key)?, expected, "{key} in: {counted}");
    }
    Ok(())
}

#[test]
fn sigint_detaches() -> Result<()> {
    ends_without_a_trace(Signal::SIGINT, "")
}

#[test]
fn sigint_detaches_even_if_sigterm_would_keep() -> Result<()> {
    ends_without_a_trace(Signal::SIGINT, "--on-exit keep")
}

#[test]
fn sigterm_detaches_by_default() -> Result<()> {
    ends_without_a_trace(Signal::SIGTERM, "")
}

#[test]
fn sigterm_detaches_if_told_to() -> Result<()> {
    ends_without_a_trace(Signal::SIGTERM, "--on-exit detach --attach generic")
}

#[test]
fn sighup_has_nothing_to_reload_where_flags_are_the_policy() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let (daemon, log) = start_logged(&limiter, &on_host("--rate 1000/s --burst 100"))?;
    let before = status(&limiter)?;
    for _ in 0..3 {
        daemon.signal(Signal::SIGHUP)?;
    }
    wait_until("the log tells of the signal", || {
        let words = ["the policy comes from flags, there is nothing to reload"];
        Ok(log.line(&words).is_some())
    })?;
    let after = status(&limiter)?;
    assert!(after.ready);
    assert_eq!(after.pid, before.pid);
    assert_eq!(after.policy.generation, before.policy.generation);
    assert_eq!(after.policy.last_reload_failure, None);
    assert_eq!(
        after.interfaces[0].program_id,
        before.interfaces[0].program_id
    );
    drop(daemon);
    assert_no_traces(&site, &limiter, "SIGHUP, then SIGINT")
}

#[test]
fn a_second_signal_does_not_hurt() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let daemon = start(&limiter, "--rate 1000/s --burst 100")?;
    daemon.signal(Signal::SIGINT)?;
    // The daemon may be gone before the second.
    drop(daemon.signal(Signal::SIGINT));
    drop(daemon.signal(Signal::SIGTERM));
    let mut daemon = daemon;
    assert_eq!(daemon.wait()?.code(), Some(0));
    assert_no_traces(&site, &limiter, "a second signal")
}
