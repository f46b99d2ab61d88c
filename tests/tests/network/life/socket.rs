//! The control socket: whose it is, and where it may be.

use std::{
    env,
    fs::{self, Permissions},
    io,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _},
        net::UnixListener,
        process::CommandExt as _,
    },
    process::{Command, Output},
};

use anyhow::{Context as _, Result};
use limiter_lab::{HOST_INTERFACE, Limiter};
use nix::{
    sys::{
        signal::Signal,
        stat::{Mode, umask},
    },
    unistd::Group,
};
use socket2::{Domain, SockAddr, Socket, Type};
use tempfile::TempDir;

use crate::common::{
    Running, Site, assert_no_traces, on_host, request, start, status, to_its_end, wait_until,
};

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
fn a_full_queue_is_not_a_stale_socket() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let daemon = start(&limiter, "--rate 1/h --burst 1")?;
    let before = fs::metadata(&limiter.socket)?.ino();
    daemon.signal(Signal::SIGSTOP)?;
    let mut waiting = Vec::new();
    let full = loop {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&SockAddr::unix(&limiter.socket)?) {
            Ok(()) => waiting.push(socket),
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), io::ErrorKind::WouldBlock, "{full}");
    let other = site.limiter()?;
    let mut second = limiter.command(&["run"]);
    second
        .args(on_host("--rate 1/h --burst 1"))
        .arg("--pin-dir")
        .arg(&other.pin_dir);
    let refused = to_its_end(&mut second)?;
    let asked = to_its_end(&mut limiter.command(&["status"]))?;
    drop(waiting);
    daemon.signal(Signal::SIGCONT)?;
    let complaint = String::from_utf8(refused.stderr)?;
    assert!(
        complaint.contains("a daemon is listening there already, too busy to answer"),
        "{complaint}"
    );
    let complaint = String::from_utf8(asked.stderr)?;
    assert!(
        complaint.contains("its queue is full") && !complaint.contains("root"),
        "{complaint}"
    );
    assert_eq!(fs::metadata(&limiter.socket)?.ino(), before);
    wait_until("it answers again", || Ok(status(&limiter)?.ready))
}

#[test]
fn a_daemon_that_does_not_answer_is_not_waited_for() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let daemon = start(&limiter, "--rate 1/h --burst 1")?;
    daemon.signal(Signal::SIGSTOP)?;
    let asked = to_its_end(&mut limiter.command(&["status"]));
    daemon.signal(Signal::SIGCONT)?;
    let asked = asked?;
    assert_eq!(asked.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(asked.stderr)?,
        format!(
            "limiter: the daemon (pid {}) does not answer within 5 s; see its log, or stop it\n",
            daemon.pid()
        )
    );
    Ok(())
}

#[test]
fn a_daemon_leaves_a_socket_that_is_not_its_own() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let daemon = start(&limiter, "--rate 1/h --burst 1")?;
    fs::remove_file(&limiter.socket)?;
    let _other = UnixListener::bind(&limiter.socket)?;
    let before = fs::metadata(&limiter.socket)?.ino();
    assert_eq!(daemon.end(Signal::SIGINT)?.code(), Some(0));
    assert_eq!(fs::metadata(&limiter.socket)?.ino(), before);
    Ok(())
}

#[test]
fn the_mode_of_the_sockets_directory_does_not_depend_on_the_umask() -> Result<()> {
    let site = Site::new()?;
    let mut limiter = site.limiter()?;
    let directory = tempfile::tempdir()?;
    for (name, mask) in [("open", 0), ("usual", 0o022), ("strict", 0o077)] {
        let parent = directory.path().join(name);
        limiter.socket = parent.join("limiter.sock");
        let mut command = limiter.command(&["run"]);
        command.args(on_host("--rate 1/h --burst 1"));
        let set = move || {
            umask(Mode::from_bits_truncate(mask));
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes one system call, and allocates nothing.
        unsafe { command.pre_exec(set) };
        let mut daemon = Running::start(&mut command)?;
        wait_until("it is ready", || {
            assert!(daemon.goes_on()?, "{}", daemon.log.text());
            Ok(status(&limiter).is_ok_and(|status| status.ready))
        })?;
        let modes = [&parent, &limiter.socket]
            .map(|path| fs::metadata(path).map(|metadata| metadata.permissions().mode() & 0o7777));
        daemon.signal(Signal::SIGINT)?;
        daemon.wait()?;
        let [parent, socket] = modes;
        assert_eq!((parent?, socket?), (0o755, 0o600), "{name}");
    }
    Ok(())
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
