//! Names of interfaces.

use anyhow::{Result, anyhow};
use limiter_lab::HOST_INTERFACE;
use limiter_userspace::{
    cli::{AttachMode, OnExit, RunArgs},
    settings::Settings,
};

use super::{GOOD, is_answered, run_is_answered};
use crate::common::{Site, start_logged, status};

#[test]
fn names_that_no_interface_can_have() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let taken_twice = format!("{HOST_INTERFACE},{HOST_INTERFACE}");
    let many: Vec<String> = (0..65).map(|n| format!("if{n}")).collect();
    let long = "x".repeat(128);
    let no_name = |shown: &str| {
        format!(
            "--iface \"{shown}\": not an interface name (1 to 127 bytes without blanks or slashes); `ip link` lists them"
        )
    };
    for (names, message) in [
        ("", no_name("")),
        ("lim0,", no_name("")),
        (&long, no_name(&long)),
        ("a/b", no_name("a/b")),
        ("a b", no_name("a b")),
        ("a\nb", no_name("a\\nb")),
        ("a\tb", no_name("a\\tb")),
        ("lim0\r", no_name("lim0\\r")),
        ("lim0,a/b", no_name("a/b")),
        (
            &taken_twice,
            format!("--iface {HOST_INTERFACE}: named twice; name each interface once"),
        ),
        (
            &many.join(","),
            "--iface: 65 interfaces, one daemon serves at most 64; run another with a --socket and --pin-dir of its own".to_owned(),
        ),
    ] {
        let mut command =
            limiter.command(&["run", "--iface", names, "--rate", "1/s", "--burst", "1"]);
        is_answered(&site, &limiter, &mut command, (2, &message))?;
    }
    let message = format!("--iface {HOST_INTERFACE}: named twice; name each interface once");
    let again = format!("{GOOD} --iface {HOST_INTERFACE}");
    run_is_answered(&site, &limiter, &again, (2, &message))
}

/// No command line can hold it, but another caller might.
#[test]
fn a_name_with_a_nul_is_refused_before_a_library_panics() -> Result<()> {
    let parsed = |error: String| anyhow!(error);
    let arguments = RunArgs {
        iface: vec!["a\0b".to_owned()],
        rate: Some("1/s".parse().map_err(parsed)?),
        burst: Some("1".parse().map_err(parsed)?),
        ipv4_prefix: None,
        ipv6_prefix: None,
        max_sources: None,
        needs_rate: None,
        needs_burst: None,
        monitor: false,
        config: None,
        attach: AttachMode::Native,
        metrics: None,
        socket_group: None,
        on_exit: OnExit::Detach,
    };
    let error = Settings::new(arguments)
        .expect_err("no such name")
        .to_string();
    assert!(
        error.starts_with("--iface \"a\\0b\": not an interface name"),
        "{error}"
    );
    Ok(())
}

#[test]
fn an_alternative_name_is_as_good_but_no_second_interface() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    for name in ["uplink", "a-name-longer-than-fifteen-bytes"] {
        let words = [
            "link",
            "property",
            "add",
            "dev",
            HOST_INTERFACE,
            "altname",
            name,
        ];
        assert!(site.host.command("ip").args(words).status()?.success());
        let policy = ["--rate", "1/s", "--burst", "1"];
        let arguments: Vec<&str> = ["--iface", name].into_iter().chain(policy).collect();
        let (daemon, log) = start_logged(&limiter, &arguments)?;
        assert_eq!(status(&limiter)?.interfaces[0].name, HOST_INTERFACE);
        let said = format!("{name} is another name of this interface");
        assert!(
            log.line(&[&said, HOST_INTERFACE]).is_some(),
            "{}",
            log.text()
        );
        drop(daemon);
        let message = format!(
            "--iface {name}: is another name of {HOST_INTERFACE}, which is named too; name each interface once"
        );
        let again = format!("{GOOD} --iface {name}");
        run_is_answered(&site, &limiter, &again, (1, &message))?;
    }
    Ok(())
}
