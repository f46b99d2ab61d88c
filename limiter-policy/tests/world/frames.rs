//! Frames, byte by byte.

use std::net::IpAddr;

/// A TCP header's SYN flag.
pub(crate) const SYN: u8 = 0x02;
/// Its ACK flag.
pub(crate) const ACK: u8 = 0x10;

/// What follows the IP header.
#[derive(Clone, Debug)]
pub(crate) enum Upper {
    /// Flags, source and destination port.
    Tcp(u8, u16, u16),
    /// Source and destination port.
    Udp(u16, u16),
    /// UDP-Lite, likewise.
    UdpLite(u16, u16),
    /// SCTP, likewise.
    Sctp(u16, u16),
    /// An echo request.
    Echo,
    /// A protocol without ports.
    Gre,
    /// A UDP header cut short.
    Cut,
}

/// Whether and how a packet is in fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fragment {
    /// It is not.
    No,
    /// It is the first.
    First,
    /// It is a later one.
    Later,
}

/// A frame with an IP packet.
pub(crate) fn packet(
    source: IpAddr,
    destination: IpAddr,
    upper: &Upper,
    fragment: Fragment,
) -> Vec<u8> {
    let v4 = source.is_ipv4();
    let (protocol, payload) = payload(upper, v4);
    let (more, offset) = match fragment {
        Fragment::No => (0, 0),
        Fragment::First => (1, 0),
        Fragment::Later => (0, 64_u16),
    };
    let mut frame = vec![0; 12];
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            frame.extend([0x08, 0x00, 0x45, 0]);
            frame.extend(length(20 + payload.len()).to_be_bytes());
            frame.extend([0, 0]);
            frame.extend(((more << 13) | (offset / 8)).to_be_bytes());
            frame.extend([64, protocol, 0, 0]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let fragmented = fragment != Fragment::No;
            let extension = if fragmented { 8 } else { 0 };
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(length(extension + payload.len()).to_be_bytes());
            frame.extend([if fragmented { 44 } else { protocol }, 64]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
            if fragmented {
                frame.extend([protocol, 0]);
                frame.extend((offset | more).to_be_bytes());
                frame.extend([0; 4]);
            }
        }
        _ => panic!("{source} does not send to {destination}"),
    }
    frame.extend(payload);
    frame
}

fn length(bytes: usize) -> u16 {
    bytes.try_into().unwrap()
}

fn payload(upper: &Upper, v4: bool) -> (u8, Vec<u8>) {
    let ports = |source: u16, destination: u16, rest: usize| {
        let mut header = [source.to_be_bytes(), destination.to_be_bytes()].concat();
        header.resize(4 + rest, 0);
        header
    };
    match *upper {
        Upper::Tcp(flags, source, destination) => {
            let mut header = ports(source, destination, 16);
            header[12] = 5 << 4;
            header[13] = flags;
            (6, header)
        }
        Upper::Udp(source, destination) => (17, ports(source, destination, 4)),
        Upper::UdpLite(source, destination) => (136, ports(source, destination, 4)),
        Upper::Sctp(source, destination) => (132, ports(source, destination, 8)),
        Upper::Echo => {
            let (protocol, kind) = if v4 { (1, 8) } else { (58, 128) };
            (protocol, vec![kind, 0, 0, 0, 0, 0, 0, 0])
        }
        Upper::Gre => (47, vec![0; 4]),
        Upper::Cut => (17, vec![0; 3]),
    }
}

/// A TCP connection attempt.
pub(crate) fn syn(source: &str, destination: &str, port: u16) -> Vec<u8> {
    let upper = Upper::Tcp(SYN, 40_000, port);
    packet(
        source.parse().unwrap(),
        destination.parse().unwrap(),
        &upper,
        Fragment::No,
    )
}

/// A UDP packet to an address of the same family.
pub(crate) fn udp(source: &str, port: u16) -> Vec<u8> {
    let source: IpAddr = source.parse().unwrap();
    let destination = if source.is_ipv4() {
        "10.0.0.1"
    } else {
        "2001:db8:d::1"
    };
    let upper = Upper::Udp(40_000, port);
    packet(source, destination.parse().unwrap(), &upper, Fragment::No)
}

/// An ARP request.
pub(crate) fn arp() -> Vec<u8> {
    let mut frame = vec![0; 42];
    frame[12..14].copy_from_slice(&[0x08, 0x06]);
    frame
}
