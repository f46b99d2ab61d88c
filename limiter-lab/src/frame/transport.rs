//! What an IP packet carries.

use etherparse::{
    Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type, IpNumber, Ipv4Header, Ipv6Header,
    TcpHeader, UdpHeader,
};

use super::{Frame, Network};

/// The bits of a TCP header's flags.
pub mod tcp_flags {
    /// No more data.
    pub const FIN: u8 = 0x01;
    /// Opens a connection.
    pub const SYN: u8 = 0x02;
    /// Aborts a connection.
    pub const RST: u8 = 0x04;
    /// Hand this over at once.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number counts.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer counts.
    pub const URG: u8 = 0x20;
}

const SHORT: &str = "a transport segment is below 64 KiB";

#[derive(Clone, Debug)]
pub(super) enum Transport {
    Unknown(IpNumber),
    Udp {
        source: u16,
        destination: u16,
    },
    Tcp(TcpHeader),
    /// ICMP or `ICMPv6`, whichever fits the packet.
    Icmp {
        kind: u8,
        code: u8,
        rest: [u8; 4],
    },
}

impl Frame {
    /// A UDP header.
    #[must_use]
    pub fn udp(self, source_port: u16, destination_port: u16) -> Self {
        self.carrying(Transport::Udp {
            source: source_port,
            destination: destination_port,
        })
    }

    /// A TCP header with these [`tcp_flags`].
    #[must_use]
    pub fn tcp(self, source_port: u16, destination_port: u16, flags: u8) -> Self {
        let has = |flag| flags & flag != 0;
        self.carrying(Transport::Tcp(TcpHeader {
            source_port,
            destination_port,
            sequence_number: 1,
            window_size: 0xffff,
            fin: has(tcp_flags::FIN),
            syn: has(tcp_flags::SYN),
            rst: has(tcp_flags::RST),
            psh: has(tcp_flags::PSH),
            ack: has(tcp_flags::ACK),
            urg: has(tcp_flags::URG),
            ..TcpHeader::default()
        }))
    }

    /// An ICMP or `ICMPv6` header, whichever fits, with the four bytes behind its checksum.
    #[must_use]
    pub fn icmp(self, kind: u8, code: u8, rest: [u8; 4]) -> Self {
        self.carrying(Transport::Icmp { kind, code, rest })
    }

    /// No transport header, but this protocol number.
    #[must_use]
    pub fn protocol(self, number: u8) -> Self {
        self.carrying(Transport::Unknown(IpNumber(number)))
    }

    fn carrying(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }
}

impl Transport {
    pub(super) fn number(&self, network: &Network) -> IpNumber {
        match self {
            Self::Unknown(number) => *number,
            Self::Udp { .. } => IpNumber::UDP,
            Self::Tcp(_) => IpNumber::TCP,
            Self::Icmp { .. } if matches!(network, Network::Ipv6(..)) => IpNumber::IPV6_ICMP,
            Self::Icmp { .. } => IpNumber::ICMP,
        }
    }

    /// Where in the header the checksum is that covers the packet's addresses, if there is one.
    pub(super) fn checksum_offset(&self, network: &Network) -> Option<usize> {
        match (self, network) {
            (Self::Udp { .. }, _) => Some(6),
            (Self::Tcp(_), _) => Some(16),
            (Self::Icmp { .. }, Network::Ipv6(..)) => Some(2),
            (Self::Icmp { .. } | Self::Unknown(_), _) => None,
        }
    }

    pub(super) fn over_ipv4(&self, ip: &Ipv4Header, payload: &[u8]) -> Vec<u8> {
        let (source, destination) = (ip.source, ip.destination);
        match self {
            Self::Unknown(_) => payload.to_vec(),
            Self::Udp {
                source: from,
                destination: to,
            } => {
                let mut header =
                    UdpHeader::without_ipv4_checksum(*from, *to, payload.len()).expect(SHORT);
                header.checksum = header
                    .calc_checksum_ipv4_raw(source, destination, payload)
                    .expect(SHORT);
                [&header.to_bytes(), payload].concat()
            }
            Self::Tcp(header) => {
                let mut header = header.clone();
                header.checksum = header
                    .calc_checksum_ipv4_raw(source, destination, payload)
                    .expect(SHORT);
                [&header.to_bytes(), payload].concat()
            }
            Self::Icmp { kind, code, rest } => {
                let kind = Icmpv4Type::Unknown {
                    type_u8: *kind,
                    code_u8: *code,
                    bytes5to8: *rest,
                };
                [
                    &Icmpv4Header::with_checksum(kind, payload).to_bytes(),
                    payload,
                ]
                .concat()
            }
        }
    }

    pub(super) fn over_ipv6(&self, ip: &Ipv6Header, payload: &[u8]) -> Vec<u8> {
        let (source, destination) = (ip.source, ip.destination);
        match self {
            Self::Unknown(_) => payload.to_vec(),
            Self::Udp {
                source: from,
                destination: to,
            } => {
                let header = UdpHeader::with_ipv6_checksum(*from, *to, ip, payload).expect(SHORT);
                [&header.to_bytes(), payload].concat()
            }
            Self::Tcp(header) => {
                let mut header = header.clone();
                header.checksum = header
                    .calc_checksum_ipv6_raw(source, destination, payload)
                    .expect(SHORT);
                [&header.to_bytes(), payload].concat()
            }
            Self::Icmp { kind, code, rest } => {
                let kind = Icmpv6Type::Unknown {
                    type_u8: *kind,
                    code_u8: *code,
                    bytes5to8: *rest,
                };
                let header =
                    Icmpv6Header::with_checksum(kind, source, destination, payload).expect(SHORT);
                [&header.to_bytes(), payload].concat()
            }
        }
    }
}
