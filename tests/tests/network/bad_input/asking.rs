//! Questions that cannot be answered.

use anyhow::Result;
use limiter_lab::Limiter;

use super::is_answered;
use crate::common::Site;

fn answer(
    site: &Site,
    limiter: &Limiter<'_>,
    arguments: &[&str],
    code: i32,
    message: &str,
) -> Result<()> {
    is_answered(
        site,
        limiter,
        &mut limiter.command(arguments),
        (code, message),
    )
}

#[test]
fn without_a_daemon_there_is_no_answer() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let message = format!(
        "--socket {}: no daemon is listening there; start one with `limiter run`, or name its socket",
        limiter.socket.display()
    );
    for question in [
        &["status"][..],
        &["status", "--json"],
        &["top"],
        &["top", "--json"],
        &["explain", "192.0.2.2"],
        &["explain", "2001:db8::2", "--json"],
    ] {
        answer(&site, &limiter, question, 1, &message)?;
    }
    Ok(())
}

#[test]
fn questions_that_cannot_be_meant() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    for (question, message) in [
        (
            &["explain", "nonsense"][..],
            "invalid value 'nonsense' for '<ADDRESS>': not an IP address, such as 192.0.2.1 or 2001:db8::1",
        ),
        (
            &["explain", "300.1.1.1"],
            "invalid value '300.1.1.1' for '<ADDRESS>': not an IP address, such as 192.0.2.1 or 2001:db8::1",
        ),
        (
            &["explain", "192.0.2.0/24"],
            "invalid value '192.0.2.0/24' for '<ADDRESS>': a prefix; write one address of it, for example 192.0.2.0",
        ),
        (
            &["explain", "192.0.2.1", "--dport", "65536"],
            "invalid value '65536' for '--dport <PORT>': not a port number from 0 to 65535, such as 22 for ssh; /etc/services lists them",
        ),
        (
            &["explain", "192.0.2.1", "--dport", "ssh"],
            "invalid value 'ssh' for '--dport <PORT>': not a port number from 0 to 65535, such as 22 for ssh; /etc/services lists them",
        ),
        (
            &["top", "--interval", "0"],
            "invalid value '0' for '--interval <SECONDS>': not a whole number of seconds from 1 to 30",
        ),
        (
            &["run", "--rate", "1/s", "--burst", "1"],
            "--iface is missing: name the interface to protect, for example --iface eth0; `ip link` lists them",
        ),
        (
            &["explain", "192.0.2.1", "--proto", "sctp"],
            "invalid value 'sctp' for '--proto <PROTO>' [possible values: tcp, udp, icmp]",
        ),
        (
            &["completions", "tcsh"],
            "invalid value 'tcsh' for '<SHELL>' [possible values: bash, elvish, fish, powershell, zsh]",
        ),
    ] {
        answer(&site, &limiter, question, 2, message)?;
    }
    Ok(())
}

#[test]
fn unknown_words_are_wrong_usage() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    for arguments in [
        &[][..],
        &["frobnicate"],
        &["--frobnicate"],
        &["run", "--frobnicate"],
        &["status", "extra"],
        &["top", "--jsonn"],
        &["explain"],
        &["unload", "--force"],
        &["completions"],
    ] {
        let output = limiter.output(arguments)?;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert_eq!(output.stdout, b"", "{arguments:?}");
        let complaint = String::from_utf8(output.stderr)?;
        assert!(
            complaint.contains("Usage: limiter"),
            "{arguments:?}: {complaint}"
        );
    }
    Ok(())
}
