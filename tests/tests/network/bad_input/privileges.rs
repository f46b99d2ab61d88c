//! Missing capabilities.

use std::{io, os::unix::process::CommandExt as _, process::Command};

use anyhow::Result;
use limiter_lab::HOST_INTERFACE;
use nix::sys::signal::Signal;

use super::{GOOD, is_answered};
use crate::common::{
    Running, Site, assert_no_traces, on_host, program_on, start, status, to_its_end, wait_until,
};

/// Numbers of capabilities (`include/uapi/linux/capability.h`).
const NET_ADMIN: u32 = 12;
pub(super) const SYS_ADMIN: u32 = 21;
const PERFMON: u32 = 38;
const BPF: u32 = 39;

/// Makes the process run without these capabilities: what root does not have in its bounding set it loses on exec.
pub(super) fn without<'a>(
    command: &'a mut Command,
    capabilities: &'static [u32],
) -> &'a mut Command {
    let drop_them = move || {
        for capability in capabilities {
            // SAFETY: the call takes plain numbers.
            let done = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, *capability, 0, 0, 0) };
            if done != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls, and allocates nothing.
    unsafe { command.pre_exec(drop_them) }
}

#[test]
fn case_107_missing_capabilities_are_named_one_by_one() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let advice = "run as root, or grant CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN";
    let table: [(&'static [u32], &str); 4] = [
        (&[SYS_ADMIN, BPF], "CAP_BPF, to load the program"),
        (
            &[SYS_ADMIN, PERFMON],
            "CAP_PERFMON, for the verifier to allow packet pointers to be compared",
        ),
        (&[NET_ADMIN], "CAP_NET_ADMIN, to attach it"),
        (
            &[SYS_ADMIN, BPF, PERFMON, NET_ADMIN],
            "CAP_BPF, to load the program",
        ),
    ];
    for (missing, what) in table {
        let mut command = limiter.command(&["run"]);
        without(command.args(on_host(GOOD)), missing);
        let message = format!("missing capability {what}: {advice}");
        is_answered(&site, &limiter, &mut command, (1, &message))?;
    }
    Ok(())
}

#[test]
fn case_107_the_three_capabilities_are_enough() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let mut command = limiter.command(&["run"]);
    without(command.args(on_host(GOOD)), &[SYS_ADMIN]);
    let mut daemon = Running::start(&mut command)?;
    wait_until("it is ready", || {
        assert!(daemon.goes_on()?, "{}", daemon.log.text());
        Ok(status(&limiter).is_ok_and(|status| status.ready))
    })?;
    assert!(program_on(&site.host, HOST_INTERFACE)?.is_some());
    daemon.signal(Signal::SIGINT)?;
    assert_eq!(daemon.wait()?.code(), Some(0), "{}", daemon.log.text());
    assert_no_traces(&site, &limiter, "a daemon without CAP_SYS_ADMIN")
}

#[test]
fn what_was_kept_can_be_taken_over_with_the_three_capabilities() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let keep = format!("{GOOD} --on-exit keep");
    start(&limiter, &keep)?.end(Signal::SIGTERM)?;
    let program = program_on(&site.host, HOST_INTERFACE)?;
    // Another mode would need a way back, which only CAP_SYS_ADMIN has.
    let mut command = limiter.command(&["run", "--attach", "generic"]);
    let refused = to_its_end(without(command.args(on_host(GOOD)), &[SYS_ADMIN]))?;
    let complaint = String::from_utf8(refused.stderr)?;
    assert!(
        complaint.contains("run with CAP_SYS_ADMIN, or `limiter unload` first"),
        "{complaint}"
    );
    assert_eq!(program_on(&site.host, HOST_INTERFACE)?, program);
    let mut command = limiter.command(&["run"]);
    without(command.args(on_host(GOOD)), &[SYS_ADMIN]);
    let mut daemon = Running::start(&mut command)?;
    wait_until("it is ready", || {
        assert!(daemon.goes_on()?, "{}", daemon.log.text());
        Ok(status(&limiter).is_ok_and(|status| status.ready))
    })?;
    assert_ne!(program_on(&site.host, HOST_INTERFACE)?, program);
    daemon.signal(Signal::SIGINT)?;
    assert_eq!(daemon.wait()?.code(), Some(0), "{}", daemon.log.text());
    assert_no_traces(&site, &limiter, "a daemon without CAP_SYS_ADMIN")
}
