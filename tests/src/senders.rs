//! Packets of whoever a test is about.

use std::net::Ipv4Addr;

use limiter_common::source::SourceKey;
use limiter_lab::frame::{Frame, tcp_flags::SYN};

use crate::{packets::HOST, policies::Rules};

/// One of the senders, by number.
#[must_use]
pub fn sender(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(203, 0, 113, number)
}

/// A UDP packet to the host.
#[must_use]
pub fn udp(source: Ipv4Addr, port: u16) -> Vec<u8> {
    Frame::ipv4(source, HOST).udp(40_000, port).build()
}

/// A connection attempt to the host.
#[must_use]
pub fn syn(source: Ipv4Addr, port: u16) -> Vec<u8> {
    Frame::ipv4(source, HOST).tcp(40_000, port, SYN).build()
}

/// The key of a sender's state.
#[must_use]
pub fn key(source: Ipv4Addr, rules: &Rules) -> SourceKey {
    use limiter_common::address::Address;
    SourceKey::of(Address::from_v4(source.to_bits()), &rules.keys()).0
}
