//! Somebody else's program on an interface stays there, and what was begun beside it is undone.

use std::{fs, path::PathBuf, process::Output};

use anyhow::{Context as _, Result, ensure};
use limiter_lab::{
    Counter, HOST_INTERFACE, HOST_V4, Mode, NET_INTERFACE, Verdict, Wire, frame::Frame,
};

use limiter_userspace::kernel::{interface, link};

use crate::common::{
    ATTACKER, DISCARD, SECOND_HOST_INTERFACE, Site, assert_no_traces, lay_second, program_on,
    to_its_end, wait_until,
};

/// The last line of standard error.
fn complaint(output: &Output) -> Result<String> {
    let text = String::from_utf8(output.stderr.clone())?;
    Ok(text
        .lines()
        .last()
        .context("it does not complain")?
        .to_owned())
}

fn stays(mode: Mode, attach: &str) -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let counter = Counter::attach(&site.host, HOST_INTERFACE, mode, Verdict::Drop)?;
    let program = program_on(&site.host, HOST_INTERFACE)?.context("no program attached")?;
    let output = to_its_end(&mut limiter.command(&[
        "run",
        "--iface",
        HOST_INTERFACE,
        "--rate",
        "1/h",
        "--burst",
        "1",
        "--attach",
        attach,
    ]))?;
    assert_eq!(output.status.code(), Some(1));
    let index = site.host.run(|| interface::find(HOST_INTERFACE))?.index;
    let link = link::holding(u32::try_from(program)?, index)?.context("no link holds it")?;
    assert_eq!(
        complaint(&output)?,
        format!(
            "limiter: --iface {HOST_INTERFACE}: XDP program count_drop (id {program}) is attached already, and held by link {link}: stop whoever \
             holds it (`bpftool link show id {link}` tells who); or name another interface"
        )
    );
    assert_eq!(program_on(&site.host, HOST_INTERFACE)?, Some(program));
    assert!(!limiter.pin_dir.exists() && !limiter.socket.exists());
    let before = counter.count()?;
    Wire::open(&site.net, NET_INTERFACE)?
        .send(&Frame::ipv4(ATTACKER, HOST_V4).udp(1234, DISCARD).build())?;
    wait_until("the other program counts", || {
        Ok(counter.count()? == before + 1)
    })
}

#[test]
fn case_99_somebody_elses_native_program_stays() -> Result<()> {
    stays(Mode::Native, "native")
}

#[test]
fn case_99_somebody_elses_generic_program_stays() -> Result<()> {
    stays(Mode::Generic, "generic")
}

#[test]
fn case_99_a_generic_program_keeps_a_native_one_away() -> Result<()> {
    stays(Mode::Generic, "native")
}

#[test]
fn two_interfaces_of_which_the_second_is_taken_leave_the_first_alone() -> Result<()> {
    let site = Site::new()?;
    lay_second(&site)?;
    let _counter = Counter::attach(
        &site.host,
        SECOND_HOST_INTERFACE,
        Mode::Native,
        Verdict::Pass,
    )?;
    let limiter = site.limiter()?;
    let both = format!("{HOST_INTERFACE},{SECOND_HOST_INTERFACE}");
    let output = to_its_end(
        &mut limiter.command(&["run", "--iface", &both, "--rate", "1/h", "--burst", "1"]),
    )?;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        complaint(&output)?.contains(&format!(
            "--iface {SECOND_HOST_INTERFACE}: XDP program count_pass"
        )),
        "{output:?}"
    );
    assert_no_traces(&site, &limiter, "a refused start")
}

#[test]
fn two_interfaces_of_which_the_second_refuses_leave_the_first_without_a_program() -> Result<()> {
    let site = Site::new()?;
    let added = site
        .host
        .command("ip")
        .args(["link", "add", "br0", "up", "type", "bridge"])
        .status()?;
    assert!(added.success(), "a bridge, which has no native XDP");
    let limiter = site.limiter()?;
    let both = format!("{HOST_INTERFACE},br0");
    let output = to_its_end(
        &mut limiter.command(&["run", "--iface", &both, "--rate", "1/h", "--burst", "1"]),
    )?;
    assert_eq!(output.status.code(), Some(1));
    let complaint = complaint(&output)?;
    assert!(
        complaint.starts_with("limiter: --iface br0: the driver refuses native XDP: "),
        "{complaint}"
    );
    assert!(complaint.contains("--attach generic"), "{complaint}");
    assert_eq!(program_on(&site.host, "br0")?, None);
    assert_no_traces(&site, &limiter, "a refused start")
}

#[test]
fn a_program_without_a_link_can_be_taken_off_as_the_message_says() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let mut counter = Counter::attach(&site.net, NET_INTERFACE, Mode::Native, Verdict::Pass)?;
    let pin = PathBuf::from(format!("{}_by_netlink", limiter.pin_dir.display()));
    counter.pin(&pin)?;
    // Its link goes with it.
    drop(counter);
    let ip = |words: &[&str]| site.host.command("ip").args(words).output();
    let modes = ["xdpdrv", "xdpgeneric"].map(|mode| {
        let path = pin.display().to_string();
        let on = ip(&["link", "set", "dev", HOST_INTERFACE, mode, "pinned", &path])?;
        ensure!(on.status.success(), "{on:?}");
        let arguments = ["run", "--iface", HOST_INTERFACE, "--rate", "1/h", "--burst", "1"];
        let complaint = complaint(&to_its_end(&mut limiter.command(&arguments))?)?;
        let advice = format!(
            "is attached already, without a link: stop whoever attached it, or take it off with `ip link set dev {HOST_INTERFACE} {mode} off`; or name another interface"
        );
        ensure!(complaint.ends_with(&advice), "{complaint}");
        let off = ip(&["link", "set", "dev", HOST_INTERFACE, mode, "off"])?;
        ensure!(off.status.success(), "{off:?}");
        program_on(&site.host, HOST_INTERFACE)
    });
    fs::remove_file(&pin)?;
    for program in modes {
        assert_eq!(program?, None);
    }
    Ok(())
}
