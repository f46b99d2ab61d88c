//! One line of a list.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    str,
};

use limiter_common::address::Address;

use crate::prefix::Prefix;

/// The shortest length of a prefix in a list, of either family.
///
/// Bought lists have contained `0.0.0.0/0`. Whoever means it writes it into the policy itself.
pub const WIDEST: u8 = 8;

/// Why a line was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It does not begin with an address, or something follows it.
    NotAPrefix,
    /// What follows the slash is not a length, or is longer than the address.
    Length {
        /// The longest length.
        most: u8,
    },
    /// It is an IPv4-mapped IPv6 prefix that is not of IPv4 addresses only.
    Mapped,
    /// It is shorter than [`WIDEST`].
    TooWide,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPrefix => {
                f.write_str("not an address or prefix, such as 198.51.100.0/24 or 2001:db8::/32")
            }
            Self::Length { most } => {
                write!(
                    f,
                    "the length after the slash is not a number from 0 to {most}"
                )
            }
            Self::Mapped => f.write_str(
                "an IPv4-mapped prefix has a length of at least 96; write the IPv4 prefix instead",
            ),
            Self::TooWide => write!(
                f,
                "covers too much for a file: lengths below {WIDEST} must be written into the policy itself"
            ),
        }
    }
}

/// What a line says: without comment and blanks.
pub(super) fn entry(line: &[u8]) -> &[u8] {
    let end = line.iter().position(|byte| matches!(byte, b'#' | b';'));
    line[..end.unwrap_or(line.len())].trim_ascii()
}

/// The prefix that an entry is, and whether it had bits beyond its length.
pub(super) fn prefix(entry: &[u8]) -> Result<(Prefix, bool), Reason> {
    // What is no text is no address.
    let entry = str::from_utf8(entry).unwrap_or_default();
    let (address, length) = match entry.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (entry, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        return Err(Reason::NotAPrefix);
    };
    // Bits of the kernel's 128 that the family does not write.
    let (most, unwritten) = match address {
        IpAddr::V4(_) => (32, 96),
        IpAddr::V6(_) => (128, 0),
    };
    let length = length.map_or(Some(most), parse_length);
    let length = length
        .filter(|&length| length <= most)
        .ok_or(Reason::Length { most })?;
    if length < WIDEST {
        return Err(Reason::TooWide);
    }
    if length < 96 && matches!(address, IpAddr::V6(v6) if is_mapped(v6)) {
        return Err(Reason::Mapped);
    }
    let address = Address::from(address);
    let prefix = Prefix::new(address, unwritten + length);
    Ok((prefix, prefix.address != address))
}

fn is_mapped(address: Ipv6Addr) -> bool {
    address.to_ipv4_mapped().is_some()
}

/// Digits only: the standard library also takes a sign.
fn parse_length(text: &str) -> Option<u8> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}
