//! No BPF file system where it usually is.

use std::{fs, io, os::unix::process::CommandExt as _, process::Command};

use anyhow::Result;
use limiter_lab::HOST_INTERFACE;
use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sched::{CloneFlags, unshare},
    sys::signal::Signal,
};

use super::{
    GOOD, is_answered,
    privileges::{SYS_ADMIN, without},
};
use crate::common::{Running, Site, assert_no_traces, on_host, program_on, status, wait_until};

/// Makes the process run with mounts of its own, among them no BPF file system.
fn without_bpffs(command: &mut Command) -> &mut Command {
    let unmount = || -> io::Result<()> {
        unshare(CloneFlags::CLONE_NEWNS)?;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
        // Until none is mounted there, however many there were.
        while umount2("/sys/fs/bpf", MntFlags::MNT_DETACH).is_ok() {}
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls, and allocates nothing.
    unsafe { command.pre_exec(unmount) }
}

#[test]
fn case_107_a_missing_bpf_file_system_is_mounted() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let mut command = limiter.command(&["run"]);
    without_bpffs(command.args(on_host(GOOD)));
    let mut daemon = Running::start(&mut command)?;
    wait_until("it is ready", || {
        assert!(daemon.goes_on()?, "{}", daemon.log.text());
        Ok(status(&limiter).is_ok_and(|status| status.ready))
    })?;
    let said = daemon
        .log
        .line(&["mounted the BPF file system at /sys/fs/bpf"]);
    assert!(said.is_some(), "{}", daemon.log.text());
    let mounts = fs::read_to_string(format!("/proc/{}/mounts", daemon.pid()))?;
    let mount = mounts.lines().find(|line| line.contains(" /sys/fs/bpf "));
    assert!(
        mount.is_some_and(|line| line.contains("mode=700")),
        "nobody else makes directories there: {mount:?}"
    );
    assert!(program_on(&site.host, HOST_INTERFACE)?.is_some());
    assert!(!limiter.pin_dir.exists(), "its mounts are its own");
    daemon.signal(Signal::SIGINT)?;
    assert_eq!(daemon.wait()?.code(), Some(0), "{}", daemon.log.text());
    assert_no_traces(&site, &limiter, "a daemon with mounts of its own")
}

#[test]
fn case_107_where_it_cannot_be_mounted_the_message_says_how() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let mut command = limiter.command(&["run"]);
    without(without_bpffs(command.args(on_host(GOOD))), &[SYS_ADMIN]);
    let message = "no BPF file system at /sys/fs/bpf, and mounting one failed; try: mount -t bpf -o mode=0700 bpf /sys/fs/bpf: EPERM: Operation not permitted";
    is_answered(&site, &limiter, &mut command, (1, message))
}
