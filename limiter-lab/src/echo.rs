//! A service worth protecting: it sends back whatever it gets, over UDP and TCP.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::fd::{AsFd as _, BorrowedFd},
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, poll},
};

use crate::{
    lab::{HOST_V4, HOST_V6, Lab},
    netns::Namespace,
    stop::Stop,
    task::{Progress, Task},
};

/// The port of a lab's echo server.
pub const ECHO_PORT: u16 = 7;

/// How long a TCP client may be silent.
const PATIENCE: Duration = Duration::from_secs(5);

/// An echo server, until it is dropped. No token stops it: what clients have under way when they are stopped should still be answered.
#[derive(Debug)]
pub struct EchoServer {
    tasks: Vec<Task<()>>,
}

impl EchoServer {
    /// Starts one on both addresses of a lab's host.
    ///
    /// # Errors
    /// As for [`EchoServer::start_at`].
    pub fn start(lab: &Lab) -> Result<Self> {
        Self::start_at(&lab.host, &[HOST_V4.into(), HOST_V6.into()], ECHO_PORT)
    }

    /// Starts one.
    ///
    /// # Errors
    /// An address is not there, or its port is in use.
    pub fn start_at(namespace: &Namespace, addresses: &[IpAddr], port: u16) -> Result<Self> {
        let stop = Stop::new();
        let mut tasks = Vec::new();
        for address in addresses
            .iter()
            .map(|address| SocketAddr::from((*address, port)))
        {
            let (datagrams, connections) = namespace
                .run(|| Ok((UdpSocket::bind(address)?, TcpListener::bind(address)?)))
                .with_context(|| format!("listen on {address}"))?;
            datagrams
                .set_nonblocking(true)
                .context("make a socket non-blocking")?;
            connections
                .set_nonblocking(true)
                .context("make a socket non-blocking")?;
            tasks.push(Task::start("echo-udp", &stop, move |stop, progress| {
                echo_datagrams(&datagrams, stop, progress)
            })?);
            tasks.push(Task::start("echo-tcp", &stop, move |stop, progress| {
                accept(&connections, stop, progress)
            })?);
        }
        Ok(Self { tasks })
    }

    /// How many datagrams and connections it has answered.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.tasks
            .iter()
            .map(|task| task.progress().answered())
            .sum()
    }
}

fn echo_datagrams(socket: &UdpSocket, stop: &Stop, progress: &Progress) -> Result<()> {
    let mut buffer = vec![0; 1 << 16];
    while wait_readable(socket.as_fd(), stop, None)? {
        let (length, client) = match socket.recv_from(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            received => received.context("receive a datagram")?,
        };
        // A client that cannot be reached, such as an invented one, is no reason to stop serving.
        if socket.send_to(&buffer[..length], client).is_ok() {
            progress.answered.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

fn accept(listener: &TcpListener, stop: &Stop, progress: &Progress) -> Result<()> {
    thread::scope(|scope| {
        while wait_readable(listener.as_fd(), stop, None)? {
            let Ok((connection, _)) = listener.accept() else {
                continue;
            };
            scope.spawn(move || {
                // A client that breaks off has no more to be told.
                if echo_connection(connection, stop).is_ok() {
                    progress.answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Ok(())
    })
}

fn echo_connection(mut connection: TcpStream, stop: &Stop) -> Result<()> {
    connection.set_nonblocking(false)?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let mut buffer = vec![0; 1 << 12];
    while wait_readable(connection.as_fd(), stop, Some(PATIENCE))? {
        match connection.read(&mut buffer)? {
            0 => break,
            length => connection.write_all(&buffer[..length])?,
        }
    }
    Ok(())
}

/// Waits until there is something to read; false when asked to stop, or when nothing came for so long.
fn wait_readable(socket: BorrowedFd<'_>, stop: &Stop, patience: Option<Duration>) -> Result<bool> {
    const LOOK: u8 = 20;
    let start = Instant::now();
    while !stop.asked() && patience.is_none_or(|patience| start.elapsed() < patience) {
        match poll(&mut [PollFd::new(socket, PollFlags::POLLIN)], LOOK) {
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error).context("wait for a socket"),
        }
    }
    Ok(false)
}
