//! What is printed for people, and to whom it cannot be printed.

use std::{fs::File, io, process::Stdio};

use anyhow::Result;
use limiter_lab::{HOST_INTERFACE, HOST_V4, NET_INTERFACE, Wire, frame::Frame};

use crate::common::{ATTACKER, DISCARD, Site, at_rest, start, top, wait_until};

/// Each command that prints.
const PRINTING: [&[&str]; 9] = [
    &["help"],
    &["--help"],
    &["--version"],
    &["help", "run"],
    &["completions", "bash"],
    &["status"],
    &["status", "--json"],
    &["top"],
    &["explain", "192.0.2.2"],
];

#[test]
fn a_reader_that_goes_away_is_no_failure() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    for arguments in PRINTING {
        let (reader, writer) = io::pipe()?;
        drop(reader);
        let output = limiter
            .command(arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()?
            .wait_with_output()?;
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        assert_eq!(output.stderr, b"", "{arguments:?}");
    }
    Ok(())
}

#[test]
fn a_full_disk_is_a_failure() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    for arguments in [
        &["status"][..],
        &["top", "--json"],
        &["explain", "192.0.2.2"],
        &["completions", "bash"],
    ] {
        let full = File::options().write(true).open("/dev/full")?;
        let output = limiter
            .command(arguments)
            .stdout(full)
            .stderr(Stdio::piped())
            .spawn()?
            .wait_with_output()?;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        let complaint = String::from_utf8(output.stderr)?;
        assert_eq!(
            complaint, "limiter: No space left on device (os error 28)\n",
            "{arguments:?}"
        );
    }
    Ok(())
}

#[test]
fn people_read_what_was_seen_dropped_and_why() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 3")?;
    let frame = Frame::ipv4(ATTACKER, HOST_V4).udp(1234, DISCARD).build();
    Wire::open(&site.net, NET_INTERFACE)?.send_all(&vec![frame; 10])?;
    let status = at_rest(&limiter)?;
    let printed = |arguments: &[&str]| -> Result<String> {
        Ok(String::from_utf8(limiter.output(arguments)?.stdout)?)
    };
    let interface = &status.interfaces[0];
    for part in [
        format!("limiter {}, ready, pid {}, up ", status.version, status.pid),
        "policy 1 from flags, enforce: IPv4 sources by /32, IPv6 by /64\n".to_owned(),
        format!(
            "{HOST_INTERFACE} (index {}): attached, native link, program {}\n",
            interface.ifindex, interface.program_id
        ),
        "  10 seen = 3 passed + 7 dropped\n  dropped: limit 7\n".to_owned(),
        "limit per-source (enforce): 1/h burst 3 per source: 3 passed, 7 dropped, 0 would drop\n"
            .to_owned(),
        " of 1048576 tracked ".to_owned(),
    ] {
        let text = printed(&["status"])?;
        assert!(text.contains(&part), "no {part:?} in:\n{text}");
    }
    let text = printed(&["explain", &ATTACKER.to_string()])?;
    for part in [
        format!("a UDP packet from {ATTACKER} would now drop: limit\n"),
        format!("source {ATTACKER}: each IPv4 address by itself\n"),
        "  3 passed, 7 dropped; last packet ".to_owned(),
        "limit per-source (enforce): 1/h burst 3; 0 packets left, admits it in 59 min ".to_owned(),
    ] {
        assert!(text.contains(&part), "no {part:?} in:\n{text}");
    }
    wait_until("the source is ranked", || {
        Ok(!top(&limiter)?.busiest.is_empty())
    })?;
    let text = printed(&["top"])?;
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.contains(&ATTACKER.to_string()))
        .collect();
    assert_eq!(rows.len(), 2, "busiest and most dropped:\n{text}");
    for row in rows {
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[1..5], ["0", "0", "3", "7"], "{text}");
    }
    assert!(
        text.contains("dropped/s") && !text.contains("would drop"),
        "{text}"
    );
    let text = printed(&[
        "explain",
        &ATTACKER.to_string(),
        "--proto",
        "tcp",
        "--sport",
        "1234",
        "--dport",
        "22",
        "--syn",
    ])?;
    let asked = format!("a TCP connection attempt from {ATTACKER} port 1234 to port 22 would now");
    assert!(text.starts_with(&asked), "{text}");
    Ok(())
}

#[test]
fn people_read_bytes_of_a_limit_in_bytes() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1MB/h --burst 1MB")?;
    let text = String::from_utf8(limiter.output(&["explain", "192.0.2.2"])?.stdout)?;
    let part = "1MB/h burst 1MB; 1.0 MB left, admits the packet now";
    assert!(text.contains(part), "{text}");
    Ok(())
}

#[test]
fn in_monitor_mode_nothing_is_said_to_be_dropped() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 3 --monitor")?;
    let frame = Frame::ipv4(ATTACKER, HOST_V4).udp(1234, DISCARD).build();
    Wire::open(&site.net, NET_INTERFACE)?.send_all(&vec![frame; 10])?;
    at_rest(&limiter)?;
    let printed = |arguments: &[&str]| -> Result<String> {
        Ok(String::from_utf8(limiter.output(arguments)?.stdout)?)
    };
    let text = printed(&["explain", &ATTACKER.to_string()])?;
    assert!(
        text.contains("  3 passed, 7 would drop; last packet "),
        "{text}"
    );
    let text = printed(&["top"])?;
    assert!(
        text.contains("would drop/s") && text.contains("(monitor)"),
        "{text}"
    );
    assert!(!text.contains("dropped"), "{text}");
    Ok(())
}
