//! Ports and ICMP types.

use super::{Upper, UpperKind, Version, read_before};
use crate::{frame::Frame, protocol::IpProtocol};

/// Shortest TCP header (RFC 9293 section 3.1).
const TCP_HEADER: u32 = 20;
/// Where its flags are.
const TCP_FLAGS: u32 = 13;
/// UDP header; also the least Linux accepts of ICMP and ICMPv6 (`struct icmphdr`, `struct icmp6hdr`).
const SHORT_HEADER: u32 = 8;
/// What the ports alone take.
const PORTS: u32 = 4;

/// Reads the header of `protocol` at `at`, in a packet that ends at `end`.
#[inline(always)]
pub(super) fn parse<F: Frame>(
    frame: &F,
    version: Version,
    protocol: IpProtocol,
    at: u32,
    end: u32,
    fragment: bool,
) -> Upper {
    let header = match (protocol, version) {
        (IpProtocol::TCP, _) => TCP_HEADER,
        (IpProtocol::UDP, _)
        | (IpProtocol::ICMP, Version::V4)
        | (IpProtocol::ICMPV6, Version::V6) => SHORT_HEADER,
        (IpProtocol::UDP_LITE | IpProtocol::SCTP | IpProtocol::DCCP, _) => PORTS,
        _ => return Upper::bare(UpperKind::OtherProtocol),
    };
    let Some(h) = read_before::<_, 4>(frame, at, end) else {
        return Upper::bare(cut(fragment));
    };
    if at + header > end || !frame.reaches(at + header) {
        return Upper::bare(cut(fragment));
    }
    if matches!(protocol, IpProtocol::ICMP | IpProtocol::ICMPV6) {
        Upper {
            icmp_type: h[0],
            icmp_code: h[1],
            ..Upper::bare(UpperKind::Icmp)
        }
    } else {
        let tcp_flags = match protocol {
            IpProtocol::TCP => frame.read::<1>(at + TCP_FLAGS).unwrap_or([0])[0],
            _ => 0,
        };
        Upper {
            tcp_flags,
            source_port: u16::from_be_bytes([h[0], h[1]]),
            destination_port: u16::from_be_bytes([h[2], h[3]]),
            ..Upper::bare(UpperKind::Ports)
        }
    }
}

/// A header that does not fit: a fault, except in a first fragment, where the rest may follow.
#[inline(always)]
pub(super) const fn cut(fragment: bool) -> UpperKind {
    if fragment {
        UpperKind::CutFirstFragment
    } else {
        UpperKind::Malformed
    }
}
