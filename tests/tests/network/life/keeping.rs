//! Enforcement without a daemon.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result};
use limiter_lab::{
    Daemon, HOST_INTERFACE, HOST_V4, Limiter, NET_INTERFACE, Tap, Wire, frame::Frame,
};
use nix::sys::signal::Signal;

use crate::common::{
    ATTACKER, DISCARD, SECOND_HOST_INTERFACE, Site, assert_no_traces, lay_second, on_host,
    program_on, start, start_logged, status, to_its_end,
};

const BURST: usize = 3;

/// Sends more than the burst, and returns how many frames reach the host's network stack.
fn admitted(site: &Site) -> Result<usize> {
    let mut tap = Tap::open(&site.host, HOST_INTERFACE)?;
    let frame = Frame::ipv4(ATTACKER, HOST_V4).udp(1234, DISCARD).build();
    Wire::open(&site.net, NET_INTERFACE)?.send_all(&vec![frame.clone(); 50])?;
    let mut count = 0;
    while let Some(arrived) = tap.next(Duration::from_millis(50))? {
        count += usize::from(arrived == frame);
    }
    Ok(count)
}

/// A daemon whose end does not end enforcement; then what the commands say, and a daemon that follows.
fn enforcement_goes_on(
    site: &Site,
    limiter: &Limiter<'_>,
    end: impl FnOnce(Daemon<'_>) -> Result<()>,
) -> Result<()> {
    let daemon = start(limiter, "--rate 1/h --burst 3 --on-exit keep")?;
    let program = program_on(&site.host, HOST_INTERFACE)?.context("no program attached")?;
    assert_eq!(admitted(site)?, BURST);
    end(daemon)?;
    assert_eq!(
        program_on(&site.host, HOST_INTERFACE)?,
        Some(program),
        "it is still there"
    );
    assert_eq!(admitted(site)?, 0, "the bucket is still empty");
    let socket = limiter.socket.display();
    for command in [&["status"][..], &["top"], &["explain", "192.0.2.2"]] {
        let output = limiter.output(command)?;
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        assert_eq!(output.stdout, b"", "{command:?}");
        assert_eq!(
            String::from_utf8(output.stderr)?,
            format!(
                "limiter: --socket {socket}: no daemon is listening there, but enforcement goes on in the kernel on \
                 {HOST_INTERFACE}; start a daemon with `limiter run`, or end it with `limiter unload`\n"
            ),
            "{command:?}"
        );
    }
    let (daemon, log) = start_logged(limiter, &on_host("--rate 1/h --burst 3"))?;
    assert!(
        log.line(&["took over", HOST_INTERFACE]).is_some(),
        "{}",
        log.text()
    );
    let status = status(limiter)?;
    let successor = program_on(&site.host, HOST_INTERFACE)?;
    assert_ne!(successor, Some(program), "a new program (case 112)");
    assert_eq!(successor, Some(status.interfaces[0].program_id.into()));
    drop(daemon);
    assert_no_traces(site, limiter, "the daemon that followed")
}

#[test]
fn sigterm_keeps_enforcement_if_told_to() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    enforcement_goes_on(&site, &limiter, |daemon| {
        assert_eq!(daemon.end(Signal::SIGTERM)?.code(), Some(0));
        Ok(())
    })?;
    Ok(())
}

#[test]
fn case_110_sigkill_keeps_enforcement_and_the_stale_socket_is_taken_over() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    enforcement_goes_on(&site, &limiter, |daemon| {
        assert_eq!(daemon.end(Signal::SIGKILL)?.code(), None);
        assert!(limiter.socket.exists(), "a killed daemon cannot tidy up");
        Ok(())
    })
}

#[test]
fn a_kept_program_keeps_its_attach_mode_until_it_is_asked_to_change() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let daemon = start(&limiter, "--rate 1/h --burst 3 --on-exit keep")?;
    daemon.end(Signal::SIGTERM)?;
    let (_daemon, log) = start_logged(&limiter, &on_host("--rate 1/h --burst 3 --attach generic"))?;
    assert!(
        log.line(&["changing the attach mode", "generic"]).is_some(),
        "{}",
        log.text()
    );
    let status = status(&limiter)?;
    assert_eq!(status.interfaces[0].attach_mode, "generic");
    assert!(status.ready);
    assert_eq!(admitted(&site)?, BURST);
    Ok(())
}

#[test]
fn what_a_killed_start_left_does_not_stop_the_next() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    // As if it had been killed while its instances found each other's maps.
    std::fs::create_dir_all(Path::new(&limiter.pin_dir).join("loading"))?;
    let daemon = start(&limiter, "--rate 1/h --burst 3")?;
    drop(daemon);
    assert_no_traces(&site, &limiter, "a start over the remains of another")
}

#[test]
fn a_kept_interface_that_the_next_daemon_does_not_serve_is_named() -> Result<()> {
    let site = Site::new()?;
    lay_second(&site)?;
    let limiter = site.limiter()?;
    let both = format!("{HOST_INTERFACE},{SECOND_HOST_INTERFACE}");
    let arguments = [
        "--iface",
        &both,
        "--rate",
        "1/h",
        "--burst",
        "3",
        "--on-exit",
        "keep",
    ];
    let (daemon, _log) = start_logged(&limiter, &arguments)?;
    daemon.end(Signal::SIGTERM)?;
    let (_daemon, log) = start_logged(&limiter, &on_host("--rate 1/h --burst 3"))?;
    assert!(
        program_on(&site.host, SECOND_HOST_INTERFACE)?.is_some(),
        "it is still limited"
    );
    let said = log.line(&[SECOND_HOST_INTERFACE]);
    assert!(said.is_some(), "nothing says so:\n{}", log.text());
    Ok(())
}

#[test]
fn pins_of_another_network_namespace_are_told_apart() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let daemon = start(&limiter, "--rate 1/h --burst 3 --on-exit keep")?;
    let interface = &status(&limiter)?.interfaces[0];
    daemon.end(Signal::SIGTERM)?;
    let mut elsewhere = site.net.command(limiter.command(&[]).get_program());
    elsewhere
        .arg("--socket")
        .arg(&limiter.socket)
        .arg("--pin-dir")
        .arg(&limiter.pin_dir)
        .args([
            "run",
            "--iface",
            NET_INTERFACE,
            "--rate",
            "1/h",
            "--burst",
            "3",
        ]);
    let output = to_its_end(&mut elsewhere)?;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    // Both ends of the cable are the first interface of their namespace.
    assert_eq!(
        String::from_utf8(output.stderr)?,
        format!(
            "limiter: --pin-dir {}: its link for interface index {} (program {}) is of another network namespace; use a pin directory for each\n",
            limiter.pin_dir.display(),
            interface.ifindex,
            interface.program_id
        )
    );
    assert_eq!(program_on(&site.net, NET_INTERFACE)?, None);
    assert_eq!(
        program_on(&site.host, HOST_INTERFACE)?,
        Some(interface.program_id.into())
    );
    Ok(())
}

#[test]
fn only_interfaces_that_are_limited_are_named() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let daemon = start(&limiter, "--rate 1/h --burst 3 --on-exit keep")?;
    let index = status(&limiter)?.interfaces[0].ifindex;
    daemon.end(Signal::SIGTERM)?;
    // Both ends of the cable are the first interface of their namespace.
    let mut elsewhere = site.net.command(limiter.command(&[]).get_program());
    elsewhere.arg("--socket").arg(&limiter.socket);
    elsewhere.arg("--pin-dir").arg(&limiter.pin_dir);
    let complaint = String::from_utf8(to_its_end(elsewhere.arg("status"))?.stderr)?;
    let there = format!("goes on in the kernel on interface {index} of another network namespace;");
    assert!(complaint.contains(&there), "{complaint}");
    let deleted = site
        .net
        .command("ip")
        .args(["link", "delete", NET_INTERFACE])
        .status()?;
    assert!(deleted.success());
    let complaint = String::from_utf8(limiter.output(&["status"])?.stderr)?;
    assert!(!complaint.contains("goes on"), "{complaint}");
    Ok(())
}
