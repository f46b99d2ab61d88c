//! Who shares a bucket, and who gets none.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fastrand::Rng;
use integration_tests::{
    check::{in_both_worlds, with_kernel},
    counted::{assert_adds_up, named},
    hammer::on_every_cpu,
    kernel::{Kernel, Shape, least_capacity},
    packets::{ATTACKER, HOST, HOST6, sources},
    policies::{self, Rules, per_hour, with_prefixes},
    world::{Action, World},
};
use limiter_common::{
    counters::{Reason, Table},
    source::SourceKey,
};
use limiter_lab::frame::Frame;

const BURST: u64 = 20;

fn rules() -> Rules {
    policies::packets(per_hour(1), BURST)
}

fn from(source: impl Into<IpAddr>) -> Vec<u8> {
    let source = source.into();
    let destination = match source {
        IpAddr::V4(_) => HOST.into(),
        IpAddr::V6(_) => HOST6.into(),
    };
    Frame::ip(source, destination).udp(40_000, 53).build()
}

/// An address in the prefix of `2001:db8:a::/48` with this number, and with this host's part.
fn site(subnet: u16, host: u64) -> Ipv6Addr {
    let prefix = 0x2001_0db8_000a_0000 | u64::from(subnet);
    Ipv6Addr::from_bits(u128::from(prefix) << 64 | u128::from(host))
}

#[test]
fn case_36_ten_thousand_addresses_of_one_prefix_share_a_burst() {
    in_both_worlds(&rules(), |place, world| {
        let mut random = Rng::with_seed(36);
        let admitted = passes(world, (0..10_000).map(|_| site(1, random.u64(..))));
        assert_eq!(admitted, BURST, "{place}");
        let keys: Vec<_> = world.sources().keys().map(SourceKey::to_string).collect();
        assert_eq!(keys, ["2001:db8:a:1::/64"], "{place}");
    });
}

#[test]
fn case_37_the_prefixes_of_a_site_are_sources_of_their_own_unless_told_otherwise() {
    let sites = || (0..500).flat_map(|subnet| (0..BURST + 5).map(move |host| site(subnet, host)));
    in_both_worlds(&rules(), |place, world| {
        assert_eq!(passes(world, sites()), 500 * BURST, "{place}");
        assert_eq!(world.sources().len(), 500, "{place}");
    });
    in_both_worlds(&with_prefixes(rules(), 32, 48), |place, world| {
        assert_eq!(passes(world, sites()), BURST, "{place}");
        assert_eq!(world.sources().len(), 1, "{place}");
    });
}

#[test]
fn case_50_neighbours_share_only_where_they_are_told_to() {
    let neighbours = || (0..=255).map(|host| Ipv4Addr::new(203, 0, 113, host));
    in_both_worlds(&policies::packets(per_hour(1), 1), |place, world| {
        assert_eq!(passes(world, neighbours()), 256, "{place}");
    });
    let shared = with_prefixes(policies::packets(per_hour(1), 1), 24, 64);
    in_both_worlds(&shared, |place, world| {
        assert_eq!(passes(world, neighbours()), 1, "{place}");
        let keys: Vec<_> = world.sources().keys().map(SourceKey::to_string).collect();
        assert_eq!(keys, ["203.0.113.0/24"], "{place}");
    });
}

#[test]
fn every_prefix_length_keeps_apart_what_differs_within_it() {
    let rules = policies::packets(per_hour(1), 1);
    let base = Ipv4Addr::new(85, 170, 85, 170).to_bits();
    let base6 = site(0xaaaa, 0xaaaa_5555_aaaa_5555).to_bits();
    with_kernel(|kernel| {
        for length in 1..=128_u8 {
            let ipv4 = length.min(32);
            kernel.reset(&with_prefixes(rules.clone(), ipv4, length));
            // The last bit of the prefix, and the first behind it.
            let last = 1 << (32 - u32::from(ipv4));
            assert_eq!(kernel.judge(&from(Ipv4Addr::from_bits(base))), Action::Pass);
            assert_eq!(
                kernel.judge(&from(Ipv4Addr::from_bits(base ^ last))),
                Action::Pass,
                "/{ipv4}"
            );
            let behind = Ipv4Addr::from_bits(base ^ last >> 1);
            assert_eq!(kernel.judge(&from(behind)), Action::Drop, "/{ipv4}");
            let last = 1 << (128 - u32::from(length));
            assert_eq!(
                kernel.judge(&from(Ipv6Addr::from_bits(base6))),
                Action::Pass
            );
            assert_eq!(
                kernel.judge(&from(Ipv6Addr::from_bits(base6 ^ last))),
                Action::Pass,
                "/{length}"
            );
            let behind = Ipv6Addr::from_bits(base6 ^ last >> 1);
            assert_eq!(kernel.judge(&from(behind)), Action::Drop, "/{length}");
        }
    });
}

#[test]
fn case_41_a_million_packets_from_nobody_take_no_slot() {
    const EACH: u32 = 50_000;
    with_kernel(|kernel| {
        kernel.reset(&rules());
        let rows = sources::impossible();
        for row in &rows {
            kernel.flood(&row.bytes, EACH);
        }
        let counters = kernel.counters();
        assert_adds_up(&counters);
        let refused = counters.dropped[Reason::InvalidSource as usize]
            + counters.dropped[Reason::Malformed as usize];
        assert_eq!(refused, u64::from(EACH) * rows.len() as u64);
        assert!(refused >= 1_000_000);
        assert!(kernel.sources().is_empty(), "{:?}", kernel.sources());
        assert_eq!(counters.table, [0; Table::COUNT]);
    });
}

#[test]
fn a_source_has_one_bucket_for_all_interfaces() {
    let shape = Shape {
        interfaces: 3,
        ..Shape::default()
    };
    let kernel = Kernel::load(shape, &rules());
    for interface in 0..3 {
        kernel.flood_on(interface, &from(ATTACKER), 9);
    }
    let counters = [0, 1, 2].map(|interface| kernel.counters_of(interface));
    counters.iter().for_each(assert_adds_up);
    assert_eq!(counters.map(|counters| counters.seen), [9, 9, 9]);
    assert_eq!(
        counters.map(|counters| counters.limits[0].passed),
        [9, 9, 2]
    );
    assert_eq!(kernel.sources().len(), 1);
}

/// A table that is too small forgets sources; it loses no count, and takes every newcomer.
#[test]
fn case_79_a_table_that_overflows_forgets_and_nothing_else() {
    let kernel = Kernel::load(Shape::of_sources(least_capacity()), &rules());
    let per_cpu = 4 * least_capacity();
    on_every_cpu(|cpu| {
        let network = u32::try_from(cpu + 11).expect("few CPUs") << 24;
        for n in 0..per_cpu {
            let action = kernel.verdict(&from(Ipv4Addr::from_bits(network | n)));
            assert_eq!(
                action,
                Action::Pass,
                "a new source starts with a full bucket"
            );
        }
    });
    let counters = kernel.counters();
    println!("{:#?}", named(&counters));
    assert_adds_up(&counters);
    assert_eq!(
        counters.table[Table::Inserted as usize],
        counters.seen,
        "each was entered"
    );
    assert!(kernel.sources().len() <= least_capacity() as usize);
}

/// How many packets pass, one from each address.
fn passes<A: Copy + Into<IpAddr>>(
    world: &mut dyn World,
    addresses: impl Iterator<Item = A>,
) -> u64 {
    addresses
        .filter(|address| world.judge(&from(*address)) == Action::Pass)
        .count() as u64
}
