//! The control socket: whose it is, and where it may be.

use std::{
    env,
    fs::{self, Permissions},
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _},
        net::UnixListener,
        process::CommandExt as _,
    },
    process::{Command, Output},
};

use anyhow::{Context as _, Result};
use limiter_lab::{HOST_INTERFACE, Limiter};
use nix::{sys::signal::Signal, unistd::Group};
use tempfile::TempDir;

use crate::common::{Running, Site, assert_no_traces, request, start, status, wait_until};

fn mode(limiter: &Limiter<'_>) -> Result<u32> {
    let metadata = fs::metadata(&limiter.socket).context("look at the socket")?;
    Ok(metadata.permissions().mode() & 0o7777)
}

#[test]
fn the_socket_is_roots_alone() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    assert_eq!(mode(&limiter)?, 0o600);
    assert_eq!(fs::metadata(&limiter.socket)?.uid(), 0);
    Ok(())
}

/// A copy of the binary where everybody may run it.
struct Public(TempDir);

impl Public {
    fn new(limiter: &Limiter<'_>) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        fs::set_permissions(&directory, Permissions::from_mode(0o755))?;
        let binary = limiter.command(&[]).get_program().to_owned();
        fs::copy(&binary, directory.path().join("limiter")).context("copy the binary")?;
        Ok(Self(directory))
    }

    /// `limiter status`, asked by nobody, of a group.
    fn status_as(&self, group: u32, limiter: &Limiter<'_>) -> Result<Output> {
        Command::new(self.0.path().join("limiter"))
            .arg("--socket")
            .arg(&limiter.socket)
            .arg("status")
            .uid(NOBODY)
            .gid(group)
            .output()
            .context("run limiter as nobody")
    }
}

const NOBODY: u32 = 65_534;

#[test]
fn the_socket_can_be_a_groups_too() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let group = Group::from_name("daemon")?.context("every Linux has a group `daemon`")?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1 --socket-group daemon")?;
    assert_eq!(mode(&limiter)?, 0o660);
    assert_eq!(fs::metadata(&limiter.socket)?.gid(), group.gid.as_raw());
    let public = Public::new(&limiter)?;
    let member = public.status_as(group.gid.as_raw(), &limiter)?;
    assert_eq!(member.status.code(), Some(0), "{member:?}");
    let stranger = public.status_as(NOBODY, &limiter)?;
    assert_eq!(stranger.status.code(), Some(1), "{stranger:?}");
    assert_eq!(
        String::from_utf8(stranger.stderr)?,
        format!(
            "limiter: --socket {}: cannot connect; run as root or as a member of the socket's group: Permission denied (os error 13)\n",
            limiter.socket.display()
        )
    );
    Ok(())
}

#[test]
fn a_stale_socket_is_replaced() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    drop(UnixListener::bind(&limiter.socket)?);
    assert!(limiter.socket.exists(), "a socket that nobody listens on");
    let daemon = start(&limiter, "--rate 1/h --burst 1")?;
    assert!(status(&limiter)?.ready);
    drop(daemon);
    assert_no_traces(&site, &limiter, "a daemon on a stale socket's path")
}

#[test]
fn the_sockets_directory_is_made() -> Result<()> {
    let site = Site::new()?;
    let mut limiter = site.limiter()?;
    let directory = tempfile::tempdir()?;
    limiter.socket = directory.path().join("a/b/limiter.sock");
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    assert!(status(&limiter)?.ready);
    Ok(())
}

#[test]
fn the_socket_may_be_named_by_the_environment_and_relative() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let directory = tempfile::tempdir()?;
    let binary = limiter.command(&[]).get_program().to_owned();
    let mut command = site.host.command(env::current_dir()?.join(binary));
    command
        .args([
            "run",
            "--iface",
            HOST_INTERFACE,
            "--rate",
            "1/h",
            "--burst",
            "1",
        ])
        .env("LIMITER_SOCKET", "limiter.sock")
        .env("LIMITER_PIN_DIR", &limiter.pin_dir)
        .current_dir(&directory);
    let socket = directory.path().join("limiter.sock");
    let daemon = Running::start(&mut command)?;
    wait_until("the daemon listens", || Ok(socket.exists()))?;
    wait_until("it is ready", || {
        Ok(request(&socket, "GET", "/v1/status")?.json()?["ready"] == true)
    })?;
    daemon.signal(Signal::SIGINT)?;
    let mut daemon = daemon;
    assert_eq!(daemon.wait()?.code(), Some(0), "{}", daemon.log.text());
    assert!(!socket.exists());
    assert_no_traces(&site, &limiter, "SIGINT")
}
