//! IPv4 (RFC 791).

use super::{Packet, Upper, UpperKind, Version, upper};
use crate::{address::Address, frame::Frame, protocol::IpProtocol};

const HEADER: u32 = 20;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// The packet whose header starts at `at`; `None` if that is malformed.
#[inline(always)]
pub(super) fn parse<F: Frame>(frame: &F, at: u32) -> Option<Packet> {
    let h = frame.read::<20>(at)?;
    let header = u32::from(h[0] & 0x0f) * 4;
    let total = u32::from(u16::from_be_bytes([h[2], h[3]]));
    if h[0] >> 4 != 4 || header < HEADER || total < header || !frame.reaches(at + header) {
        return None;
    }
    let flags_and_offset = u16::from_be_bytes([h[6], h[7]]);
    let later = flags_and_offset & FRAGMENT_OFFSET != 0;
    let fragment = later || flags_and_offset & MORE_FRAGMENTS != 0;
    let protocol = IpProtocol(h[9]);
    let upper = if later {
        Upper::bare(UpperKind::LaterFragment)
    } else {
        upper::parse(
            frame,
            Version::V4,
            protocol,
            at + header,
            at + total,
            fragment,
        )
    };
    Some(Packet {
        version: Version::V4,
        source: Address::from_v4(u32::from_be_bytes([h[12], h[13], h[14], h[15]])),
        destination: Address::from_v4(u32::from_be_bytes([h[16], h[17], h[18], h[19]])),
        hop_limit: h[8],
        fragment,
        protocol,
        upper,
    })
}
