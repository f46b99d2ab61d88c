//! A million prefixes.

#[expect(dead_code, reason = "each test uses a part of it")]
mod world;

use std::time::{Duration, Instant};

use limiter_common::address::Address;
use limiter_policy::{
    changes::Changes,
    compile::{LoadedPrefixes, compile},
    identities::Identities,
    prefix::Prefix,
    spec::ClassTerms,
};

use self::world::{bucket, class, limit, spec};

const MILLION: u32 = 1_000_000;

/// Addresses in no order, or one of each /24 there.
fn scattered(shift: u32) -> Vec<Prefix> {
    let addresses = (0..MILLION).map(|n| n.wrapping_mul(0x9e37_79b1) >> shift << shift);
    addresses
        .map(|bits| Prefix::new(Address::from_v4(bits), 128))
        .collect()
}

#[test]
fn a_million_addresses_compile_in_no_time() {
    let mut policy = spec();
    let mut limit = limit("x", bucket("10/s", "10"));
    limit.classes.insert(0, ClassTerms::Exempt);
    policy.limits.push(limit);
    policy.classes.push(class("many"));
    let prefixes = LoadedPrefixes {
        classes: vec![scattered(0)],
        allow: Vec::new(),
        ban: scattered(0),
    };
    for (source, entries) in [(32, 1), (24, 2)] {
        policy.sources.ipv4_prefix = source;
        let began = Instant::now();
        let mut identities = Identities::default();
        let compiled =
            compile(&policy, &prefixes, &Changes::default(), &mut identities, 0).unwrap();
        let took = began.elapsed();
        println!("a class and a list of a million by /{source}: {took:?}");
        assert!(compiled.classes.entries().len() <= MILLION as usize * entries);
        assert!(compiled.classes.entries().len() >= MILLION as usize);
        let most = if cfg!(debug_assertions) { 60 } else { 3 };
        assert!(took < Duration::from_secs(most), "{took:?}");
    }
}
