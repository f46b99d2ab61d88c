//! Whose a state is.

use limiter_common::address::Address;
use limiter_policy::prefix::Prefix;

use super::Model;

/// Whose a state is: a source, and where addresses of it differ, the classes too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    source: Prefix,
    classes: Vec<String>,
}

fn bits(address: Address) -> u128 {
    u128::from(address.high) << 64 | u128::from(address.low)
}

/// Whether a prefix covers an address.
pub(crate) fn covers(prefix: Prefix, address: Address) -> bool {
    let differ = bits(prefix.address) ^ bits(address);
    differ.leading_zeros() >= u32::from(prefix.length)
}

fn region(address: u128, length: u32) -> impl Fn(Prefix) -> bool {
    move |prefix| {
        let differ = bits(prefix.address) ^ address;
        u32::from(prefix.length) >= length && differ.leading_zeros() >= length
    }
}

/// How many bits tell apart the sources that all lie in a prefix.
fn source_length(prefix: Prefix, (ipv4, ipv6): (u8, u8)) -> u8 {
    if region(0xffff_0000_0000, 96)(prefix) {
        96 + ipv4
    } else if region(0xfe80 << 112, 10)(prefix) || region(0x0064_ff9b << 96, 96)(prefix) {
        128
    } else if region(0x2002 << 112, 16)(prefix) {
        48
    } else {
        ipv6
    }
}

fn source(address: Address, lengths: (u8, u8)) -> Prefix {
    let whole = Prefix {
        address,
        length: 128,
    };
    Prefix::new(address, source_length(whole, lengths))
}

impl Model {
    /// Whose state a packet from this address is judged by.
    pub(crate) fn key(&self, address: Address) -> Key {
        let sources = &self.spec.sources;
        let lengths = (sources.ipv4_prefix, sources.ipv6_prefix);
        let source = source(address, lengths);
        let splits = |prefix: &Prefix| {
            prefix.length > source.length
                && covers(source, prefix.address)
                && source_length(*prefix, lengths) == source.length
        };
        let split = self.class_prefixes().any(|prefix| splits(&prefix))
            || self.listed_prefixes().any(|prefix| splits(&prefix));
        let classes = if split {
            self.chain(address)
        } else {
            Vec::new()
        };
        Key { source, classes }
    }

    /// Whose state the limits on wider sources judge by.
    pub(crate) fn wide_key(&self, address: Address) -> Key {
        let sources = &self.spec.sources;
        Key {
            source: source(
                address,
                (sources.wide_ipv4_prefix, sources.wide_ipv6_prefix),
            ),
            classes: Vec::new(),
        }
    }
}
