//! Interfaces that go down, come up, and vanish under a running daemon.

use std::{fs, thread, time::Duration};

use anyhow::{Result, ensure};
use limiter_lab::{
    Daemon, HOST_INTERFACE, HOST_V4, Limiter, NET_INTERFACE, Namespace, Wire, frame::Frame,
};
use nix::sys::signal::Signal;

use crate::common::{
    ATTACKER, DISCARD, Site, assert_no_traces, at_rest, explain, on_host, program_on, start,
    start_logged, status, wait_until,
};

fn ip(namespace: &Namespace, words: &str) -> Result<()> {
    let output = namespace.command("ip").args(words.split(' ')).output()?;
    ensure!(output.status.success(), "ip {words}: {output:?}");
    Ok(())
}

#[test]
fn a_cable_that_is_unplugged_and_plugged_in_again_changes_nothing() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let daemon = start(&limiter, "--rate 1/h --burst 3")?;
    let before = status(&limiter)?;
    let frame = Frame::ipv4(ATTACKER, HOST_V4).udp(1234, DISCARD).build();
    Wire::open(&site.net, NET_INTERFACE)?.send_all(&vec![frame.clone(); 5])?;
    wait_until("five are counted", || Ok(explain_dropped(&limiter)? == 2))?;
    for end in [(&site.net, NET_INTERFACE), (&site.host, HOST_INTERFACE)] {
        ip(end.0, &format!("link set {} down", end.1))?;
        let down = status(&limiter)?;
        assert!(
            down.ready && down.interfaces[0].attached,
            "{} is down",
            end.1
        );
        assert_eq!(down.pid, before.pid);
        ip(end.0, &format!("link set {} up", end.1))?;
    }
    // Sending fails until the kernel has noticed.
    let wire = Wire::open(&site.net, NET_INTERFACE)?;
    wait_until("frames arrive again", || {
        drop(wire.send(&frame));
        Ok(explain_dropped(&limiter)? > 2)
    })?;
    let after = at_rest(&limiter)?;
    assert_eq!(
        after.interfaces[0].program_id,
        before.interfaces[0].program_id
    );
    assert_eq!(after.limits[0].passed, 3, "the bucket is still empty");
    assert_eq!(daemon.end(Signal::SIGINT)?.code(), Some(0));
    Ok(())
}

fn explain_dropped(limiter: &Limiter<'_>) -> Result<u64> {
    Ok(explain(limiter, ATTACKER)?.dropped)
}

#[test]
fn an_interface_that_vanishes_is_reported_and_does_not_end_the_daemon() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let (daemon, log) = start_logged(&limiter, &on_host("--rate 1/h --burst 3"))?;
    ip(&site.net, &format!("link delete {NET_INTERFACE}"))?;
    let status = status(&limiter)?;
    assert!(
        !status.ready && !status.interfaces[0].attached,
        "{status:?}"
    );
    assert_eq!(
        daemon.end(Signal::SIGINT)?.code(),
        Some(0),
        "{}",
        log.text()
    );
    assert!(!limiter.pin_dir.exists() && !limiter.socket.exists());
    Ok(())
}

#[test]
fn case_117_a_link_cannot_be_taken_off_by_hand() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let daemon = start(&limiter, "--rate 1/h --burst 3")?;
    let by_hand = ip(
        &site.host,
        &format!("link set dev {HOST_INTERFACE} xdp off"),
    );
    assert!(by_hand.is_err());
    assert!(status(&limiter)?.interfaces[0].attached);
    assert_eq!(daemon.end(Signal::SIGINT)?.code(), Some(0));
    Ok(())
}

/// A daemon whose pin somebody removes.
fn without_its_pin(
    site: &Site,
    limiter: &Limiter<'_>,
    end: impl FnOnce(Daemon<'_>) -> Result<()>,
) -> Result<()> {
    let (daemon, _log) = start_logged(limiter, &on_host("--rate 1/h --burst 3 --on-exit keep"))?;
    let interface = &status(limiter)?.interfaces[0];
    fs::remove_file(limiter.pin_dir.join(format!("link_{}", interface.ifindex)))?;
    thread::sleep(Duration::from_millis(200));
    assert_eq!(
        program_on(&site.host, HOST_INTERFACE)?,
        Some(interface.program_id.into()),
        "the daemon holds it, too"
    );
    assert!(status(limiter)?.ready);
    end(daemon)
}

#[test]
fn case_117_a_pin_that_somebody_removes_ends_nothing() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    without_its_pin(&site, &limiter, |daemon| {
        assert_eq!(daemon.end(Signal::SIGINT)?.code(), Some(0));
        assert_no_traces(&site, &limiter, "SIGINT")
    })?;
    without_its_pin(&site, &limiter, |daemon| {
        assert_eq!(daemon.end(Signal::SIGTERM)?.code(), Some(0));
        let kept = program_on(&site.host, HOST_INTERFACE)?;
        assert!(kept.is_some(), "what is kept is pinned again");
        let output = limiter.output(&["unload"])?;
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_no_traces(&site, &limiter, "unload")
    })
}

#[test]
fn a_kept_interface_that_is_gone_leaves_nothing_after_unload() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let daemon = start(&limiter, "--rate 1/h --burst 3 --on-exit keep")?;
    let index = status(&limiter)?.interfaces[0].ifindex;
    daemon.end(Signal::SIGTERM)?;
    ip(&site.net, &format!("link delete {NET_INTERFACE}"))?;
    let output = limiter.output(&["unload"])?;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(
        String::from_utf8(output.stdout)?,
        format!("detached from interface {index} (gone)\n")
    );
    assert!(!limiter.pin_dir.exists());
    Ok(())
}

#[test]
fn case_93_the_mtu_can_be_raised_under_the_program() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    ip(&site.net, &format!("link set {NET_INTERFACE} mtu 9000"))?;
    ip(&site.host, &format!("link set {HOST_INTERFACE} mtu 9000"))?;
    let jumbo = Frame::ipv4(ATTACKER, HOST_V4)
        .udp(1234, DISCARD)
        .payload(8_900);
    Wire::open(&site.net, NET_INTERFACE)?.send_all(&vec![jumbo.build(); 3])?;
    wait_until("all are judged", || {
        Ok(explain(&limiter, ATTACKER)?.dropped == 2)
    })
}
