//! IPv6 and its extension headers (RFC 8200).

use super::{Packet, Upper, UpperKind, Version, read_before, upper};
use crate::{address::Address, frame::Frame, opaque::forget, protocol::IpProtocol};

/// Extension headers that are stepped over. A packet with more is limited by its source, its ports unknown.
pub const MAX_EXTENSIONS: u32 = 8;

const HEADER: u32 = 40;
const FRAGMENT_OFFSET: u16 = 0xfff8;
const MORE_FRAGMENTS: u16 = 0x0001;

/// What the extension chain led to.
struct Chain {
    protocol: IpProtocol,
    fragment: bool,
    /// Where the upper-layer header starts.
    offset: u32,
    /// Why there is no upper-layer header, if so.
    ended: Option<UpperKind>,
}

/// The packet whose header starts at `at`; `None` if that is malformed.
#[inline(always)]
pub(super) fn parse<F: Frame>(frame: &F, at: u32) -> Option<Packet> {
    let h = frame.read::<40>(at)?;
    if h[0] >> 4 != 6 {
        return None;
    }
    let payload = u32::from(u16::from_be_bytes([h[4], h[5]]));
    let next = IpProtocol(h[6]);
    // A zero length before hop-by-hop options announces a jumbo payload (RFC 2675 section 3); Linux reads it the
    // same way (`ip6_rcv_core`, 6.12).
    let end = if payload == 0 && next == IpProtocol::HOP_BY_HOP {
        u32::MAX
    } else {
        at + HEADER + payload
    };
    let Chain {
        protocol,
        fragment,
        offset,
        ended,
    } = chain(frame, next, at + HEADER, end);
    let upper = match ended {
        None => upper::parse(frame, Version::V6, protocol, offset, end, fragment),
        Some(kind) => Upper::bare(kind),
    };
    Some(Packet {
        version: Version::V6,
        source: Address::from_v6([
            h[8], h[9], h[10], h[11], h[12], h[13], h[14], h[15], h[16], h[17], h[18], h[19],
            h[20], h[21], h[22], h[23],
        ]),
        destination: Address::from_v6([
            h[24], h[25], h[26], h[27], h[28], h[29], h[30], h[31], h[32], h[33], h[34], h[35],
            h[36], h[37], h[38], h[39],
        ]),
        hop_limit: h[7],
        fragment,
        protocol,
        upper,
    })
}

#[inline(always)]
fn chain<F: Frame>(frame: &F, first: IpProtocol, at: u32, end: u32) -> Chain {
    let mut chain = Chain {
        protocol: first,
        fragment: false,
        offset: at,
        ended: None,
    };
    for _ in 0..MAX_EXTENSIONS {
        if !chain.protocol.is_extension() {
            return chain;
        }
        // No extension header is shorter than 8 bytes.
        let Some(h) = read_before::<_, 8>(frame, chain.offset, end) else {
            chain.ended = Some(upper::cut(chain.fragment));
            return chain;
        };
        let length = match chain.protocol {
            IpProtocol::FRAGMENT => 8,
            IpProtocol::AUTHENTICATION => (u32::from(h[1]) + 2) * 4,
            _ => (u32::from(h[1]) + 1) * 8,
        };
        let mut later = false;
        if chain.protocol == IpProtocol::FRAGMENT {
            let offset_and_flags = u16::from_be_bytes([h[2], h[3]]);
            later = offset_and_flags & FRAGMENT_OFFSET != 0;
            chain.fragment |= later || offset_and_flags & MORE_FRAGMENTS != 0;
        }
        chain.protocol = IpProtocol(h[0]);
        if later {
            chain.ended = Some(UpperKind::LaterFragment);
            return chain;
        }
        chain.offset = forget::<0x7fff>(chain.offset + length);
        chain.fragment = forget::<1>(chain.fragment.into()) != 0;
        if chain.offset > end || !frame.reaches(chain.offset) {
            chain.ended = Some(upper::cut(chain.fragment));
            return chain;
        }
    }
    if chain.protocol.is_extension() {
        chain.ended = Some(UpperKind::ChainTooLong);
    }
    chain
}
