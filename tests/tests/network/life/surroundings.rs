//! What a daemon does without.

use std::{io, os::unix::process::CommandExt as _, path::Path, process::Command};

use anyhow::Result;
use limiter_lab::HOST_INTERFACE;
use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
    sys::signal::Signal,
};

use crate::common::{Running, Site, assert_no_traces, on_host, program_on, status, wait_until};

/// Starts a daemon in a way of its own, and ends it.
fn runs(prepare: impl FnOnce(&mut Command)) -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let mut command = limiter.command(&["run"]);
    command.args(on_host("--rate 1/h --burst 1"));
    prepare(&mut command);
    let mut daemon = Running::start(&mut command)?;
    wait_until("it is ready", || {
        assert!(daemon.goes_on()?, "{}", daemon.log.text());
        Ok(status(&limiter).is_ok_and(|status| status.ready))
    })?;
    assert!(program_on(&site.host, HOST_INTERFACE)?.is_some());
    daemon.signal(Signal::SIGINT)?;
    assert_eq!(daemon.wait()?.code(), Some(0), "{}", daemon.log.text());
    assert_no_traces(&site, &limiter, "SIGINT")
}

/// Hides the kernel's type information, in mounts of the process's own.
fn hide_btf() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
    let (tmpfs, place) = (Some("tmpfs"), "/sys/kernel/btf");
    mount(tmpfs, place, tmpfs, MsFlags::empty(), None::<&str>)?;
    Ok(())
}

#[test]
fn case_105_it_needs_no_type_information_of_the_kernel() -> Result<()> {
    runs(|command| {
        if Path::new("/sys/kernel/btf").exists() {
            // SAFETY: between fork and exec the function makes system calls, and allocates nothing.
            unsafe { command.pre_exec(hide_btf) };
        }
    })
}

/// Allows 64 kB of locked memory, which maps counted against before Linux 5.11.
fn lock_little_memory() -> io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: 64 << 10,
        rlim_max: 64 << 10,
    };
    // SAFETY: the limit lives until the call returns.
    match unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[test]
fn case_106_it_needs_no_locked_memory() -> Result<()> {
    runs(|command| {
        // SAFETY: between fork and exec the function makes one system call, and allocates nothing.
        unsafe { command.pre_exec(lock_little_memory) };
    })
}

#[test]
fn it_needs_no_environment() -> Result<()> {
    runs(|command| {
        command.env_clear().current_dir("/");
    })
}
