//! Raw access to an interface: whole frames out, whole frames in.

use std::{
    io::{self, ErrorKind, Read as _},
    os::fd::AsRawFd as _,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use libc::{c_int, socklen_t};
use nix::net::if_::if_nametoindex;
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};

use crate::netns::Namespace;

/// Sends frames out of an interface, byte for byte.
#[derive(Debug)]
pub struct Wire {
    socket: Socket,
}

impl Wire {
    /// Opens one.
    ///
    /// # Errors
    /// Not root, or no such interface.
    pub fn open(namespace: &Namespace, interface: &str) -> Result<Self> {
        // Protocol 0: it receives nothing.
        Ok(Self {
            socket: bound(namespace, interface, 0)?,
        })
    }

    /// Sends one frame.
    ///
    /// # Errors
    /// The interface is down, the frame is longer than its MTU allows, or there is no room for it at the other end.
    pub fn send(&self, frame: &[u8]) -> Result<()> {
        let sent = self
            .socket
            .send(frame)
            .with_context(|| format!("send a frame of {} bytes", frame.len()))?;
        ensure!(
            sent == frame.len(),
            "of a frame of {} bytes, {sent} were sent",
            frame.len()
        );
        Ok(())
    }

    /// Sends them one after the other.
    ///
    /// # Errors
    /// As for [`Wire::send`].
    pub fn send_all<'a>(&self, frames: impl IntoIterator<Item = &'a Vec<u8>>) -> Result<()> {
        frames.into_iter().try_for_each(|frame| self.send(frame))
    }
}

/// Receives the frames that an interface hands to the network stack: behind native XDP programs, beside generic ones.
///
/// The kernel has taken off the outermost VLAN tag.
#[derive(Debug)]
pub struct Tap {
    socket: Socket,
}

impl Tap {
    /// Opens one with room for about 100,000 short frames.
    ///
    /// # Errors
    /// Not root, or no such interface.
    pub fn open(namespace: &Namespace, interface: &str) -> Result<Self> {
        let every = u16::try_from(libc::ETH_P_ALL)?;
        let socket = bound(namespace, interface, every)?;
        // Forced: what the system allows by default holds a few hundred frames.
        set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 128 << 20)?;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        Ok(Self { socket })
    }

    /// The next frame that came in; `None` when nothing came for so long.
    ///
    /// # Errors
    /// The interface went away.
    pub fn next(&mut self, patience: Duration) -> Result<Option<Vec<u8>>> {
        self.socket
            .set_read_timeout(Some(patience))
            .context("set a socket's patience")?;
        let mut frame = vec![0; 1 << 16];
        match self.socket.read(&mut frame) {
            Ok(length) => {
                frame.truncate(length);
                Ok(Some(frame))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(None)
            }
            Err(error) => Err(error).context("receive a frame"),
        }
    }
}

fn set_option(socket: &Socket, level: c_int, name: c_int, value: c_int) -> Result<()> {
    let length = socklen_t::try_from(size_of::<c_int>())?;
    // SAFETY: the value lives until the call returns, and is as long as said.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            length,
        )
    };
    ensure!(
        done == 0,
        "set option {name} of a packet socket: {}",
        io::Error::last_os_error()
    );
    Ok(())
}

/// A packet socket bound to an interface, for frames of this `EtherType`.
fn bound(namespace: &Namespace, interface: &str, ether_type: u16) -> Result<Socket> {
    namespace
        .run(|| {
            let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0)))
                .context("open a packet socket")?;
            let index = if_nametoindex(interface).context("find the interface")?;
            socket
                .bind(&address(ether_type, i32::try_from(index)?)?)
                .context("bind a packet socket")?;
            Ok(socket)
        })
        .with_context(|| format!("open {interface} for whole frames"))
}

fn address(ether_type: u16, interface: c_int) -> Result<SockAddr> {
    let length = socklen_t::try_from(size_of::<libc::sockaddr_ll>())?;
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: a sockaddr_ll is a socket address, and consists of integers.
    let link = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    link.sll_family = u16::try_from(libc::AF_PACKET)?;
    link.sll_protocol = ether_type.to_be();
    link.sll_ifindex = interface;
    // SAFETY: the storage holds a sockaddr_ll, which is so long.
    Ok(unsafe { SockAddr::new(storage, length) })
}
