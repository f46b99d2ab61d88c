//! A frame to make many of that differ in their source.

use super::{Frame, Network};

/// A frame's bytes, and the places in it that depend on the source address.
#[derive(Clone, Debug)]
pub struct Template {
    /// The frame.
    pub bytes: Vec<u8>,
    /// 4 or 6.
    pub version: u8,
    /// Where the IP header begins, bytes.
    pub ip_offset: usize,
    /// Where the transport's checksum is, if it covers the source, bytes.
    pub transport_checksum_offset: Option<usize>,
}

impl Frame {
    /// This frame as a template.
    ///
    /// # Panics
    /// It is no IP packet, or cannot be built.
    #[must_use]
    pub fn template(&self) -> Template {
        let version = match &self.network {
            Network::Ipv4(_) => 4,
            Network::Ipv6(..) => 6,
            Network::Other(kind) => panic!("a frame of type {kind:?} has no source to replace"),
        };
        let checksum = self.transport.checksum_offset(&self.network);
        Template {
            bytes: self.build(),
            version,
            ip_offset: self.ip_offset(),
            transport_checksum_offset: checksum.map(|offset| self.transport_offset() + offset),
        }
    }
}
