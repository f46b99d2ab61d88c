//! IPv6 extension headers.

use etherparse::{IpAuthHeader, IpFragOffset, IpNumber, Ipv6FragmentHeader, Ipv6RawExtHeader};

use super::IDENTIFICATION;

/// One extension header. What it contains makes no receiver drop it: options are unknown ones that are to be skipped.
#[derive(Clone, Debug)]
pub struct Extension {
    number: IpNumber,
    /// All of the header; its first byte, the next header, is filled in when the chain is built.
    bytes: Vec<u8>,
}

impl Extension {
    /// Hop-by-hop options, 8 bytes.
    #[must_use]
    pub fn hop_by_hop() -> Self {
        Self::generic(IpNumber::IPV6_HEADER_HOP_BY_HOP.0, 8)
    }

    /// Destination options, 8 bytes.
    #[must_use]
    pub fn destination() -> Self {
        Self::generic(IpNumber::IPV6_DESTINATION_OPTIONS.0, 8)
    }

    /// A routing header that is at its end, 8 bytes.
    #[must_use]
    pub fn routing() -> Self {
        Self::generic(IpNumber::IPV6_ROUTE_HEADER.0, 8)
    }

    /// Any header with the common layout, of so many bytes.
    ///
    /// # Panics
    /// The length is no multiple of 8 from 8 to 2048.
    #[must_use]
    pub fn generic(number: u8, length: usize) -> Self {
        let number = IpNumber(number);
        let content = length
            .checked_sub(2)
            .expect("an extension header has at least 8 bytes");
        let content = if number == IpNumber::IPV6_ROUTE_HEADER {
            at_its_end(content)
        } else {
            skipped(content)
        };
        let header = Ipv6RawExtHeader::new_raw(IpNumber(0), &content)
            .expect("an extension header has 8 to 2048 bytes, a multiple of 8");
        Self {
            number,
            bytes: header.to_bytes().to_vec(),
        }
    }

    /// An authentication header with an integrity value of so many bytes (a multiple of 4, at most 1016). Its length unit is its own.
    ///
    /// # Panics
    /// No such integrity value exists.
    #[must_use]
    pub fn authentication(integrity: usize) -> Self {
        let header = IpAuthHeader::new(IpNumber(0), 1, 1, &vec![0; integrity])
            .expect("an integrity value has at most 1016 bytes, a multiple of 4");
        Self {
            number: IpNumber::AUTHENTICATION_HEADER,
            bytes: header.to_bytes().to_vec(),
        }
    }

    pub(super) fn fragment(offset: IpFragOffset, more: bool) -> Self {
        let header = Ipv6FragmentHeader::new(IpNumber(0), offset, more, IDENTIFICATION.into());
        Self {
            number: IpNumber::IPV6_FRAGMENTATION_HEADER,
            bytes: header.to_bytes().to_vec(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// The number of the first header of a chain that ends with `last`, and the chain's bytes.
pub(super) fn chain(extensions: &[Extension], last: IpNumber) -> (IpNumber, Vec<u8>) {
    let mut numbers = extensions
        .iter()
        .map(|extension| extension.number)
        .chain([last]);
    let first = numbers.next().unwrap_or(last);
    let mut bytes = Vec::new();
    for (extension, next) in extensions.iter().zip(numbers) {
        let start = bytes.len();
        bytes.extend_from_slice(&extension.bytes);
        bytes[start] = next.0;
    }
    (first, bytes)
}

/// Options of an experimental kind whose number says "skip me". Kernels drop headers made only of padding.
fn skipped(length: usize) -> Vec<u8> {
    const EXPERIMENT: u8 = 0x1e;
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        match length - bytes.len() {
            1 => bytes.push(0),
            room => {
                let content = u8::try_from(room - 2).unwrap_or(u8::MAX);
                bytes.extend([EXPERIMENT, content]);
                bytes.resize(bytes.len() + usize::from(content), 0);
            }
        }
    }
    bytes
}

/// A routing header of an experimental type with no segments left.
fn at_its_end(length: usize) -> Vec<u8> {
    const EXPERIMENT: u8 = 253;
    let mut bytes = vec![0; length];
    bytes[0] = EXPERIMENT;
    bytes
}
