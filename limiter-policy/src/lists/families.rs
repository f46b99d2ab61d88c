//! IPv4 lies inside the IPv6 address space of the kernel's tables.

use limiter_common::address::Address;

use crate::prefix::Prefix;

/// All of IPv4.
const IPV4: Prefix = Prefix {
    address: Address::from_v4(0),
    length: 96,
};

/// Keeps an IPv6 prefix such as `::/0` or the `::/8` of lists of unassigned addresses from meaning IPv4 too: adds an
/// entry that says `nothing` of all IPv4, where there is none.
pub fn keep_apart<V>(entries: &mut Vec<(Prefix, V)>, nothing: V) {
    let around = |prefix: &Prefix| *prefix != IPV4 && prefix.covers(&IPV4);
    if entries.iter().any(|(prefix, _)| around(prefix))
        && entries.iter().all(|(prefix, _)| *prefix != IPV4)
    {
        entries.push((IPV4, nothing));
    }
}
