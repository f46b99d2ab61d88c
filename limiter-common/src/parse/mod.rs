//! Frame -> headers.
//!
//! Parsing never fails: what cannot be read is said in the result. Where a header is cut short, nothing is guessed
//! from the bytes behind it.

mod ipv4;
mod ipv6;
mod link;
mod upper;

pub use ipv6::MAX_EXTENSIONS;
pub use link::MAX_TAGS;

use crate::{address::Address, frame::Frame, protocol::IpProtocol};

/// What a frame holds.
///
/// This and [`Packet`] are plain structs, every field always written: an enum with a payload would leave registers
/// undefined on the paths without one, and the BPF verifier refuses a program that as much as copies them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// VLAN tags stepped over, 0 to [`MAX_TAGS`].
    pub tags: u32,
    /// What is behind them.
    pub content: Content,
    /// The IP packet; [`Packet::NONE`] unless `content` is [`Content::Ip`].
    pub packet: Packet,
}

/// What is behind the Ethernet header and its tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A link or network header that is cut short or contradicts itself; there is no source to speak of.
    Malformed,
    /// More VLAN tags than [`MAX_TAGS`].
    TooManyTags,
    /// Not IP.
    NonIp(NonIp),
    /// An IP packet with a whole network header.
    Ip,
}

/// Frames that carry no IP header where we look for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonIp {
    /// ARP.
    Arp,
    /// Slow protocols: LACP and its kin.
    Lacp,
    /// LLDP.
    Lldp,
    /// 802.1X.
    Eapol,
    /// Spanning tree.
    Stp,
    /// An 802.3 length, other than spanning tree.
    Llc,
    /// Precision time.
    Ptp,
    /// MACsec: everything inside is encrypted.
    Macsec,
    /// PPPoE: IP may be inside, but not where we look.
    Pppoe,
    /// Any other EtherType.
    Other,
}

/// The family of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// An IP packet, as far as a verdict needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Family.
    pub version: Version,
    /// Source address.
    pub source: Address,
    /// Destination address.
    pub destination: Address,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// Whether it is a fragment, the first one included. An atomic fragment (RFC 6946) is none.
    pub fragment: bool,
    /// The protocol behind the IP header and its extensions, as far as they were read.
    pub protocol: IpProtocol,
    /// What was read of that protocol's header.
    pub upper: Upper,
}

/// What was read behind the network header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upper {
    /// Which of the fields below say something.
    pub kind: UpperKind,
    /// Source port, of [`UpperKind::Ports`].
    pub source_port: u16,
    /// Destination port, of [`UpperKind::Ports`].
    pub destination_port: u16,
    /// Message type, of [`UpperKind::Icmp`].
    pub icmp_type: u8,
    /// Message code, of [`UpperKind::Icmp`].
    pub icmp_code: u8,
    /// Flags of a TCP header (RFC 9293 section 3.1), of [`UpperKind::Ports`].
    pub tcp_flags: u8,
}

/// What the header behind the network header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpperKind {
    /// TCP, UDP, UDP-Lite, SCTP or DCCP: ports.
    Ports,
    /// ICMP in IPv4 or ICMPv6 in IPv6: type and code.
    Icmp,
    /// A fragment other than the first: its payload may look like ports and is none.
    LaterFragment,
    /// A first fragment too short for its headers (RFC 1858 section 3, RFC 7112 section 5).
    CutFirstFragment,
    /// More extension headers than [`MAX_EXTENSIONS`].
    ChainTooLong,
    /// A protocol without ports, or one that is not read.
    OtherProtocol,
    /// Cut short, or past the end of the packet.
    Malformed,
}

impl Upper {
    /// Neither ports nor type.
    const fn bare(kind: UpperKind) -> Self {
        Self {
            kind,
            source_port: 0,
            destination_port: 0,
            icmp_type: 0,
            icmp_code: 0,
            tcp_flags: 0,
        }
    }
}

impl Packet {
    /// No packet.
    pub const NONE: Self = Self {
        version: Version::V4,
        source: Address { high: 0, low: 0 },
        destination: Address { high: 0, low: 0 },
        hop_limit: 0,
        fragment: false,
        protocol: IpProtocol(0),
        upper: Upper::bare(UpperKind::Malformed),
    };
}

impl Parsed {
    /// A frame without an IP packet.
    #[inline(always)]
    const fn without_packet(tags: u32, content: Content) -> Self {
        Self {
            tags,
            content,
            packet: Packet::NONE,
        }
    }

    /// Whether something might read otherwise if more of the frame were readable.
    #[inline(always)]
    #[must_use]
    pub const fn ran_out_of_frame(&self) -> bool {
        match self.content {
            Content::Malformed | Content::NonIp(NonIp::Llc) => true,
            Content::Ip => matches!(
                self.packet.upper.kind,
                UpperKind::Malformed | UpperKind::CutFirstFragment
            ),
            Content::NonIp(_) | Content::TooManyTags => false,
        }
    }
}

/// Parses a frame that starts with an Ethernet header.
#[inline(always)]
#[must_use]
pub fn parse<F: Frame>(frame: &F) -> Parsed {
    link::parse(frame)
}

/// The `N` bytes at `offset` if they lie in the frame and before `end`.
#[inline(always)]
fn read_before<F: Frame, const N: usize>(frame: &F, offset: u32, end: u32) -> Option<[u8; N]> {
    if offset as usize + N > end as usize {
        return None;
    }
    frame.read(offset)
}

#[cfg(test)]
mod tests;
