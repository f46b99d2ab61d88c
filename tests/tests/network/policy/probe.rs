//! Frames sent one after the other, and which of them reach the host's network stack.

use std::{net::IpAddr, time::Duration};

use anyhow::Result;
use limiter_lab::{
    HOST_INTERFACE, HOST_V4, HOST_V6, NET_INTERFACE, Namespace, Tap, Wire, frame::Frame,
};

use crate::common::{DISCARD, Site};

/// After so long without a frame, none is under way.
const QUIET: Duration = Duration::from_millis(30);

/// A wire and a tap.
pub(super) struct Probe {
    wire: Wire,
    tap: Tap,
}

impl Probe {
    pub(super) fn new(site: &Site) -> Result<Self> {
        Self::between((&site.net, NET_INTERFACE), (&site.host, HOST_INTERFACE))
    }

    pub(super) fn between(net: (&Namespace, &str), host: (&Namespace, &str)) -> Result<Self> {
        Ok(Self {
            wire: Wire::open(net.0, net.1)?,
            tap: Tap::open(host.0, host.1)?,
        })
    }

    /// Sends a frame so many times, and returns how many arrive.
    pub(super) fn send(&mut self, frame: &[u8], times: usize) -> Result<usize> {
        for _ in 0..times {
            self.wire.send(frame)?;
        }
        let mut count = 0;
        while count < times {
            match self.tap.next(QUIET)? {
                Some(arrived) => count += usize::from(arrived == frame),
                None => break,
            }
        }
        // What arrives besides is not asked for.
        Ok(count)
    }

    /// Whether a UDP frame from a source passes.
    pub(super) fn passes(&mut self, source: impl Into<IpAddr>) -> Result<bool> {
        Ok(self.send(&udp(source), 1)? == 1)
    }
}

/// A UDP frame from a source to the host.
pub(super) fn udp(source: impl Into<IpAddr>) -> Vec<u8> {
    let frame = match source.into() {
        IpAddr::V4(source) => Frame::ipv4(source, HOST_V4),
        IpAddr::V6(source) => Frame::ipv6(source, HOST_V6),
    };
    frame.udp(1234, DISCARD).build()
}
