//! Address prefixes in the 128-bit form of the kernel's tables.

use std::{fmt, sync::Arc};

use ipnet::IpNet;
use limiter_common::address::Address;

/// A prefix. IPv4 is in the IPv4-mapped form, 96 bits longer. Ordered so that a prefix comes before those inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    /// The address; bits beyond the length are zero.
    pub address: Address,
    /// The length, 0 to 128.
    pub length: u8,
}

impl Prefix {
    /// The first `length` bits of an address.
    #[must_use]
    pub const fn new(address: Address, length: u8) -> Self {
        Self {
            address: address.masked(Address::mask(length as u32)),
            length,
        }
    }

    /// Whether every address of `other` is one of this prefix.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.length <= other.length && Self::new(other.address, self.length) == *self
    }
}

impl From<IpNet> for Prefix {
    fn from(net: IpNet) -> Self {
        let address = Address::from(net.network());
        match net {
            IpNet::V4(net) => Self::new(address, 96 + net.prefix_len()),
            IpNet::V6(net) => Self::new(address, net.prefix_len()),
        }
    }
}

impl fmt::Display for Prefix {
    /// `198.51.100.7`, `198.51.100.0/24` or `2001:db8::/32`: the length is left out where it covers one address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, length } = *self;
        write!(f, "{address}")?;
        let (length, whole) = if address.is_mapped() && length >= 96 {
            (length - 96, 32)
        } else {
            (length, 128)
        };
        if length == whole {
            Ok(())
        } else {
            write!(f, "/{length}")
        }
    }
}

/// Prefixes with what each of them means, sorted, each once. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixSet<V>(Arc<Vec<(Prefix, V)>>);

impl<V> Default for PrefixSet<V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<V> PrefixSet<V> {
    /// A set of entries in any order. Of entries with one prefix, the last stays.
    #[must_use]
    pub fn new(mut entries: Vec<(Prefix, V)>) -> Self {
        entries.sort_by_key(|(prefix, _)| *prefix);
        entries.reverse();
        entries.dedup_by_key(|(prefix, _)| *prefix);
        entries.reverse();
        Self(Arc::new(entries))
    }

    /// A set of entries that are sorted already, each prefix once.
    pub(crate) fn sorted(entries: Vec<(Prefix, V)>) -> Self {
        debug_assert!(entries.is_sorted_by(|a, b| a.0 < b.0), "sorted, each once");
        Self(Arc::new(entries))
    }

    /// The entries, sorted by prefix.
    #[must_use]
    pub fn entries(&self) -> &[(Prefix, V)] {
        &self.0
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces all entries in a region by others, sorted; returns what differs, without a value where there is none now.
    pub(crate) fn replace_within(
        &mut self,
        region: Prefix,
        next: Vec<(Prefix, V)>,
    ) -> Vec<(Prefix, Option<V>)>
    where
        V: Copy + PartialEq,
    {
        let begin = self.0.partition_point(|(prefix, _)| *prefix < region);
        let length = self.0[begin..].partition_point(|(prefix, _)| region.covers(prefix));
        let entries = Arc::make_mut(&mut self.0);
        let before: Vec<_> = entries
            .splice(begin..begin + length, next.clone())
            .collect();
        Self(Arc::new(before)).differences(&Self(Arc::new(next)))
    }

    /// What is to be put into this set, or where there is no value, taken out of it, to make it another.
    #[must_use]
    pub fn differences(&self, next: &Self) -> Vec<(Prefix, Option<V>)>
    where
        V: Copy + PartialEq,
    {
        let mut differences = Vec::new();
        let (mut old, mut new) = (self.0.iter().peekable(), next.0.iter().peekable());
        loop {
            match (old.peek(), new.peek()) {
                (None, None) => return differences,
                (Some((gone, _)), other) if other.is_none_or(|(next, _)| gone < next) => {
                    differences.push((*gone, None));
                    old.next();
                }
                (before, Some((prefix, value))) => {
                    let stays = before.is_some_and(|(before, _)| before == prefix);
                    if !stays || before.is_some_and(|(_, before)| before != value) {
                        differences.push((*prefix, Some(*value)));
                    }
                    if stays {
                        old.next();
                    }
                    new.next();
                }
                (Some(_), None) => unreachable!("what is left of the old is gone"),
            }
        }
    }

    /// The entry with the longest prefix that covers an address, as the kernel finds it.
    #[must_use]
    pub fn longest(&self, address: Address) -> Option<&(Prefix, V)> {
        (0..=128).rev().find_map(|length| {
            let prefix = Prefix::new(address, length);
            let at = self.0.binary_search_by_key(&prefix, |(prefix, _)| *prefix);
            at.ok().map(|at| &self.0[at])
        })
    }
}
