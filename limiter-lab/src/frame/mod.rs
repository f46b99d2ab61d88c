//! Ethernet frames for traffic, byte by byte as they go over the cable, with valid lengths and checksums.
//!
//! ```
//! use limiter_lab::frame::Frame;
//!
//! let frame = Frame::ipv4([198, 51, 100, 7], [192, 0, 2, 1]).ttl(3).options(2).udp(1234, 53).payload(100).tagged(&[100]);
//! assert_eq!(frame.build().len(), 14 + 4 + 20 + 8 + 8 + 100);
//! ```
//!
//! What is malformed is made of a valid frame: cut it short, or change the byte at [`Frame::ip_offset`] or [`Frame::transport_offset`].

mod extension;
mod needs;
mod template;
mod transport;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{
    EtherType, Ethernet2Header, IpFragOffset, IpNumber, Ipv4Header, Ipv6Header, SingleVlanHeader,
    VlanId,
};

use self::transport::Transport;
pub use self::{extension::Extension, template::Template, transport::tcp_flags};
use crate::{
    lab::{HOST_MAC, NET_MAC},
    mac::Mac,
};

/// A frame to be built. By default it goes from the lab's network to the protected host, or to the group that its destination is.
#[derive(Clone, Debug)]
pub struct Frame {
    source: Mac,
    destination: Mac,
    tags: Vec<(EtherType, u16)>,
    network: Network,
    transport: Transport,
    payload: Vec<u8>,
    shortest: usize,
}

#[derive(Clone, Debug)]
enum Network {
    Ipv4(Ipv4Header),
    Ipv6(Ipv6Header, Vec<Extension>),
    Other(EtherType),
}

impl Frame {
    /// An IPv4 packet without payload; its protocol is 255 until something else is asked for.
    #[must_use]
    pub fn ipv4(source: impl Into<Ipv4Addr>, destination: impl Into<Ipv4Addr>) -> Self {
        let (source, destination) = (source.into(), destination.into());
        let header = Ipv4Header {
            time_to_live: 64,
            source: source.octets(),
            destination: destination.octets(),
            ..Ipv4Header::default()
        };
        let to = match destination {
            Ipv4Addr::BROADCAST => Mac::BROADCAST,
            group if group.is_multicast() => Mac::of_ipv4_group(group),
            _ => HOST_MAC,
        };
        Self::new(Network::Ipv4(header)).to(to)
    }

    /// An IPv6 packet without payload; its next header is 255 until something else is asked for.
    #[must_use]
    pub fn ipv6(source: impl Into<Ipv6Addr>, destination: impl Into<Ipv6Addr>) -> Self {
        let (source, destination) = (source.into(), destination.into());
        let header = Ipv6Header {
            hop_limit: 64,
            source: source.octets(),
            destination: destination.octets(),
            ..Ipv6Header::default()
        };
        let to = if destination.is_multicast() {
            Mac::of_ipv6_group(destination)
        } else {
            HOST_MAC
        };
        Self::new(Network::Ipv6(header, Vec::new())).to(to)
    }

    /// A packet of either version.
    ///
    /// # Panics
    /// The addresses are not of one version.
    #[must_use]
    pub fn ip(source: IpAddr, destination: IpAddr) -> Self {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Self::ipv4(source, destination),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Self::ipv6(source, destination),
            _ => panic!("{source} and {destination} are not of one version"),
        }
    }

    /// A frame of another kind; below 1536 the number is an 802.3 length.
    #[must_use]
    pub fn other(ether_type: u16) -> Self {
        Self::new(Network::Other(EtherType(ether_type)))
    }

    fn new(network: Network) -> Self {
        Self {
            source: NET_MAC,
            destination: HOST_MAC,
            tags: Vec::new(),
            network,
            transport: Transport::Unknown(IpNumber(255)),
            payload: Vec::new(),
            shortest: 0,
        }
    }

    /// Who sends the frame.
    #[must_use]
    pub fn from(mut self, source: Mac) -> Self {
        self.source = source;
        self
    }

    /// Who gets the frame.
    #[must_use]
    pub fn to(mut self, destination: Mac) -> Self {
        self.destination = destination;
        self
    }

    /// Adds 802.1Q tags, the outermost first.
    #[must_use]
    pub fn tagged(mut self, ids: &[u16]) -> Self {
        self.tags
            .extend(ids.iter().map(|id| (EtherType::VLAN_TAGGED_FRAME, *id)));
        self
    }

    /// Adds an 802.1ad tag (a provider's), inside those added before.
    #[must_use]
    pub fn service_tagged(mut self, id: u16) -> Self {
        self.tags.push((EtherType::PROVIDER_BRIDGING, id));
        self
    }

    /// The time to live, or hop limit.
    ///
    /// # Panics
    /// It is no IP packet.
    #[must_use]
    pub fn ttl(mut self, ttl: u8) -> Self {
        match &mut self.network {
            Network::Ipv4(header) => header.time_to_live = ttl,
            Network::Ipv6(header, _) => header.hop_limit = ttl,
            Network::Other(kind) => panic!("a frame of type {kind:?} has no time to live"),
        }
        self
    }

    /// Adds IPv4 options: so many 32-bit words of "no operation", 0 to 10.
    ///
    /// # Panics
    /// It is no IPv4 packet, or more than 10.
    #[must_use]
    pub fn options(mut self, words: usize) -> Self {
        let Network::Ipv4(header) = &mut self.network else {
            panic!("only IPv4 has options")
        };
        header.options = vec![1; words * 4]
            .as_slice()
            .try_into()
            .expect("at most 10 words of options");
        self
    }

    /// Adds an IPv6 extension header, behind those added before.
    ///
    /// # Panics
    /// It is no IPv6 packet.
    #[must_use]
    pub fn extension(mut self, extension: Extension) -> Self {
        let Network::Ipv6(_, extensions) = &mut self.network else {
            panic!("only IPv6 has extension headers")
        };
        extensions.push(extension);
        self
    }

    /// Makes it a fragment: the payload begins at this byte of the datagram (a multiple of 8), and there are more or not.
    ///
    /// The frame keeps its transport header wherever it begins; use [`Frame::protocol`] for a later fragment without one, or
    /// [`Frame::fragments`] to have a datagram cut up.
    ///
    /// # Panics
    /// It is no IP packet, or no such offset exists.
    #[must_use]
    pub fn fragment(mut self, offset: u16, more: bool) -> Self {
        let units = fragment_offset(offset);
        match &mut self.network {
            Network::Ipv4(header) => {
                header.fragment_offset = units;
                header.more_fragments = more;
                header.dont_fragment = false;
                header.identification = IDENTIFICATION;
            }
            Network::Ipv6(_, extensions) => extensions.push(Extension::fragment(units, more)),
            Network::Other(kind) => panic!("a frame of type {kind:?} has no fragments"),
        }
        self
    }

    /// So many zero bytes behind all headers.
    #[must_use]
    pub fn payload(self, length: usize) -> Self {
        self.payload_bytes(&vec![0; length])
    }

    /// These bytes behind all headers.
    #[must_use]
    pub fn payload_bytes(mut self, bytes: &[u8]) -> Self {
        bytes.clone_into(&mut self.payload);
        self
    }

    /// Pads the frame with zero bytes that belong to no packet, as Ethernet pads to 60 bytes.
    #[must_use]
    pub fn padded_to(mut self, length: usize) -> Self {
        self.shortest = length;
        self
    }

    /// The bytes of the frame.
    ///
    /// # Panics
    /// It is longer than its own length fields can say.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        self.with_body(&self.body())
    }

    /// The frames of this datagram cut into pieces of so many bytes (a multiple of 8) behind the IP header.
    ///
    /// # Panics
    /// It is no IP packet, or the size is 0 or no multiple of 8.
    #[must_use]
    pub fn fragments(&self, size: u16) -> Vec<Vec<u8>> {
        assert!(size > 0, "a fragment has a size");
        let body = self.body();
        let last = body.len().saturating_sub(1) / usize::from(size);
        let cut = |(n, piece): (usize, &[u8])| {
            let offset = u16::try_from(n * usize::from(size)).expect("a datagram is below 64 KiB");
            self.clone().fragment(offset, n < last).with_body(piece)
        };
        body.chunks(usize::from(size))
            .enumerate()
            .map(cut)
            .collect()
    }

    /// Where the packet begins behind the Ethernet header and its tags, bytes.
    #[must_use]
    pub fn ip_offset(&self) -> usize {
        Ethernet2Header::LEN + SingleVlanHeader::LEN * self.tags.len()
    }

    /// Where the transport header, or what stands in its place, begins, bytes.
    #[must_use]
    pub fn transport_offset(&self) -> usize {
        let headers = match &self.network {
            Network::Ipv4(header) => header.header_len(),
            Network::Ipv6(_, extensions) => {
                Ipv6Header::LEN + extensions.iter().map(Extension::len).sum::<usize>()
            }
            Network::Other(_) => 0,
        };
        self.ip_offset() + headers
    }

    /// What stands behind the IP header and its extensions.
    fn body(&self) -> Vec<u8> {
        match &self.network {
            Network::Ipv4(header) => self.transport.over_ipv4(header, &self.payload),
            Network::Ipv6(header, _) => self.transport.over_ipv6(header, &self.payload),
            Network::Other(_) => self.payload.clone(),
        }
    }

    fn with_body(&self, body: &[u8]) -> Vec<u8> {
        let mut bytes = self.ethernet();
        match &self.network {
            Network::Ipv4(header) => {
                let mut header = header.clone();
                header.protocol = self.transport.number(&self.network);
                header
                    .set_payload_len(body.len())
                    .expect("an IPv4 packet is below 64 KiB");
                header.header_checksum = header.calc_header_checksum();
                bytes.extend_from_slice(&header.to_bytes());
            }
            Network::Ipv6(header, extensions) => {
                let (first, chain) =
                    extension::chain(extensions, self.transport.number(&self.network));
                let mut header = header.clone();
                header.next_header = first;
                header
                    .set_payload_length(chain.len() + body.len())
                    .expect("an IPv6 packet is below 64 KiB");
                bytes.extend_from_slice(&header.to_bytes());
                bytes.extend_from_slice(&chain);
            }
            Network::Other(_) => {}
        }
        bytes.extend_from_slice(body);
        bytes.resize(bytes.len().max(self.shortest), 0);
        bytes
    }

    /// The Ethernet header with its tags.
    fn ethernet(&self) -> Vec<u8> {
        let last = match &self.network {
            Network::Ipv4(_) => EtherType::IPV4,
            Network::Ipv6(..) => EtherType::IPV6,
            Network::Other(kind) => *kind,
        };
        // Each header names the type of what follows it.
        let mut types = self.tags.iter().map(|(kind, _)| *kind).chain([last]);
        let header = Ethernet2Header {
            source: self.source.0,
            destination: self.destination.0,
            ether_type: types.next().unwrap_or(last),
        };
        let mut bytes = header.to_bytes().to_vec();
        for ((_, id), ether_type) in self.tags.iter().zip(types) {
            let vlan_id = VlanId::try_new(*id).expect("a VLAN's number has 12 bits");
            bytes.extend_from_slice(
                &SingleVlanHeader {
                    vlan_id,
                    ether_type,
                    ..SingleVlanHeader::default()
                }
                .to_bytes(),
            );
        }
        bytes
    }
}

/// All fragments belong to one datagram: the identification is fixed.
const IDENTIFICATION: u16 = 0x1234;

fn fragment_offset(bytes: u16) -> IpFragOffset {
    assert!(
        bytes.is_multiple_of(8),
        "a fragment begins at a multiple of 8 bytes, not at {bytes}"
    );
    IpFragOffset::try_new(bytes / 8).expect("13 bits hold an eighth of 16")
}

#[cfg(test)]
mod tests;
