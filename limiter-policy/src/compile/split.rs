//! Sources whose addresses differ: a prefix of a class or list that is longer than the source's own.
//!
//! Nothing can be remembered for such a source as a whole. So the source's own prefix and all prefixes inside it say so.

use limiter_common::{
    address::Address,
    source::{Prefixes, SourceKey},
};

use crate::prefix::Prefix;

/// Sources that are split, sorted.
#[derive(Debug)]
pub(super) struct Split<'a> {
    keys: &'a Prefixes,
    sources: Vec<Prefix>,
}

/// Addresses whose sources are told apart by a rule of their own: IPv4 in its mapped form, link-local, NAT64, 6to4. See
/// [`SourceKey::of`].
const REGIONS: [Prefix; 4] = [
    region(0, 0xffff_0000_0000, 96),
    region(0xfe80 << 48, 0, 10),
    region(0x0064_ff9b << 32, 0, 96),
    region(0x2002 << 48, 0, 16),
];

const fn region(high: u64, low: u64, length: u8) -> Prefix {
    Prefix::new(Address { high, low }, length)
}

/// The source that all addresses of a prefix belong to, if it is one source.
pub(super) fn source_of(prefix: Prefix, keys: &Prefixes) -> Option<Prefix> {
    let length = match REGIONS.iter().find(|region| region.covers(&prefix)) {
        Some(_) => SourceKey::of(prefix.address, keys).0.length,
        // Though its first address may lie in a region, the prefix reaches beyond.
        None => keys.lengths().1,
    };
    let length = u8::try_from(length).unwrap_or(128);
    (length <= prefix.length).then(|| Prefix::new(prefix.address, length))
}

/// All that an entry of a prefix may make a difference to.
pub(super) fn concerned(prefix: Prefix, keys: &Prefixes) -> Prefix {
    // The entry of a region may be needed in any case, for the sake of a source around it.
    let around = u8::try_from(keys.lengths().1)
        .ok()
        .filter(|length| *length < prefix.length && REGIONS.contains(&prefix))
        .map(|length| Prefix::new(prefix.address, length));
    around.or_else(|| source_of(prefix, keys)).unwrap_or(prefix)
}

impl<'a> Split<'a> {
    /// The sources that `prefixes` split.
    pub(super) fn new(prefixes: impl Iterator<Item = Prefix>, keys: &'a Prefixes) -> Self {
        let mut split = Self {
            keys,
            sources: Vec::new(),
        };
        for prefix in prefixes {
            if let Some(source) = source_of(prefix, keys)
                && source.length < prefix.length
                && split.sources.last() != Some(&source)
            {
                split.sources.push(source);
            }
        }
        split.sources.sort_unstable();
        split.sources.dedup();
        split
    }

    /// Whether addresses of the source around a prefix differ.
    pub(super) fn contains(&self, prefix: Prefix) -> bool {
        !self.sources.is_empty()
            && source_of(prefix, self.keys)
                .is_some_and(|source| self.sources.binary_search(&source).is_ok())
    }

    /// Prefixes that need an entry of their own: those of the sources that are split, and inside them the regions, which
    /// have other sources.
    pub(super) fn needed(&self) -> impl Iterator<Item = Prefix> {
        self.sources.iter().flat_map(|source| {
            let regions = REGIONS
                .iter()
                .filter(|region| source.covers(region) && source.length < region.length);
            std::iter::once(source).chain(regions).copied()
        })
    }
}

#[cfg(test)]
mod tests {
    use ipnet::IpNet;

    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse::<IpNet>().unwrap().into()
    }

    #[test]
    fn each_rule_has_its_own_length() {
        for (text, source) in [
            ("198.51.100.7/32", Some("198.51.100.0/24")),
            ("198.51.100.0/24", None),
            ("198.51.0.0/16", None),
            ("2001:db8:1:2::/64", None),
            ("2001:db8:1:2::/65", Some("2001:db8:1:2::/64")),
            ("fe80::1/128", None),
            ("64:ff9b::c633:6407/128", None),
            ("2002:c633:6407::/48", None),
            ("2002:c633:6407:9::/64", Some("2002:c633:6407::/48")),
            ("::/0", None),
        ] {
            let keys = Prefixes::new(24, 64).unwrap();
            let split = Split::new([prefix(text)].into_iter(), &keys);
            let expected: Vec<_> = source.map(prefix).into_iter().collect();
            assert_eq!(split.sources, expected, "{text}");
        }
    }

    #[test]
    fn a_source_around_a_region_leaves_it_out() {
        let keys = Prefixes::new(32, 8).unwrap();
        let split = Split::new([prefix("fe80::/9")].into_iter(), &keys);
        assert_eq!(
            split.sources,
            [prefix("fe00::/8")],
            "fec0:: is not link-local"
        );
        let needed: Vec<_> = split.needed().collect();
        assert_eq!(needed, [prefix("fe00::/8"), prefix("fe80::/10")]);
        assert!(split.contains(prefix("fe80::/9")));
        assert!(!split.contains(prefix("fe80::/10")));
        assert!(!split.contains(prefix("fe80::1/128")));
        assert!(split.contains(prefix("fec0::/10")));
    }
}
