//! What an interface does to packets on its own: the switches of `ethtool -K`, without the `ethtool` command.

use std::{io, mem::MaybeUninit, net::UdpSocket, os::fd::AsRawFd as _};

use anyhow::{Context as _, Result, ensure};

use crate::netns::Namespace;

/// An offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Merging received segments. On a veth end it also starts NAPI, without which frames sent by XDP do not arrive.
    Gro,
    /// Handing over TCP segments larger than the MTU.
    Tso,
    /// The same for other protocols.
    Gso,
    /// Leaving the computation of transport checksums to the receiver.
    TxChecksum,
}

impl Offload {
    /// The command of `SIOCETHTOOL` that sets it.
    fn command(self) -> u32 {
        match self {
            Self::Gro => 0x2c,
            Self::Tso => 0x1f,
            Self::Gso => 0x24,
            Self::TxChecksum => 0x17,
        }
    }
}

/// `struct ethtool_value` of the kernel.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Turns an offload on or off.
///
/// # Errors
/// There is no such interface, or it does not let the offload be changed.
pub fn set_offload(
    namespace: &Namespace,
    interface: &str,
    offload: Offload,
    on: bool,
) -> Result<()> {
    namespace
        .run(|| {
            let mut value = EthtoolValue {
                command: offload.command(),
                data: u32::from(on),
            };
            // SAFETY: all zeroes is a valid ifreq.
            let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
            ensure!(
                interface.len() < request.ifr_name.len(),
                "the name is longer than an interface's can be"
            );
            for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
                *to = from.cast_signed();
            }
            request.ifr_ifru.ifru_data = (&raw mut value).cast();
            let socket = UdpSocket::bind(("0.0.0.0", 0)).context("open a socket")?;
            // SAFETY: the request and the value it points to live until the call returns.
            let done =
                unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
            ensure!(done == 0, io::Error::last_os_error());
            Ok(())
        })
        .with_context(|| {
            format!(
                "turn {offload:?} {} on {interface}",
                if on { "on" } else { "off" }
            )
        })
}
