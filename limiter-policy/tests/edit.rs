//! A ban that comes or goes is an edit, as good as compiling anew.

#[expect(dead_code, reason = "each test uses a part of it")]
mod world;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use fastrand::Rng;
use limiter_common::address::Address;
use limiter_policy::{
    changes::{Changes, OperatorBan},
    compile::{Compiled, Identities, LoadedPrefixes, compile, edit_lists},
    prefix::Prefix,
    spec::PolicySpec,
};

use self::world::{random, spec};

fn compiled(spec: &PolicySpec, prefixes: &LoadedPrefixes, changes: &Changes) -> Compiled {
    let mut identities = Identities::default();
    compile(spec, prefixes, changes, &mut identities, 50).unwrap()
}

#[test]
fn an_edit_is_as_good_as_compiling_anew() {
    for seed in 0..3000 {
        let mut random = Rng::with_seed(seed);
        let mut policy = spec();
        policy.sources = random::policy(&mut random).0.sources;
        let mut lists = LoadedPrefixes {
            allow: random::prefixes(&mut random),
            ban: random::prefixes(&mut random),
            ..LoadedPrefixes::default()
        };
        lists.sort();
        let mut changes = Changes::default();
        let first = compiled(&policy, &lists, &changes);
        let mut set = first.lists;
        for _ in 0..8 {
            let touched = if random.bool() || changes.bans.is_empty() {
                let prefix = random::net(&mut random);
                let until = random.bool().then(|| random.u64(40..60));
                changes.bans.push(OperatorBan { prefix, until });
                prefix
            } else {
                let at = random.usize(..changes.bans.len());
                changes.bans.remove(at).prefix
            };
            let mut kernel: BTreeMap<_, _> = set.entries().iter().copied().collect();
            let keys = &first.policy.prefixes;
            let edits = edit_lists(&mut set, &lists, &changes, keys, touched.into(), 50);
            for (prefix, entry) in edits {
                let before = kernel.remove(&prefix);
                assert_ne!(before, entry, "seed {seed}: only what differs");
                kernel.extend(entry.map(|entry| (prefix, entry)));
            }
            let anew = compiled(&policy, &lists, &changes).lists;
            assert_eq!(set, anew, "seed {seed}");
            assert!(
                kernel.into_iter().eq(anew.entries().iter().copied()),
                "seed {seed}"
            );
        }
    }
}

#[test]
fn a_ban_beside_a_million_takes_no_time() {
    let addresses = (0..1_000_000_u32).map(|n| n.wrapping_mul(0x9e37_79b1));
    let mut lists = LoadedPrefixes {
        ban: addresses
            .map(|bits| Prefix::new(Address::from_v4(bits), 128))
            .collect(),
        ..LoadedPrefixes::default()
    };
    lists.sort();
    let mut changes = Changes::default();
    let first = compiled(&spec(), &lists, &changes);
    let mut set = first.lists;
    let prefix = "198.51.100.0/29".parse().unwrap();
    changes.bans.push(OperatorBan {
        prefix,
        until: None,
    });
    let began = Instant::now();
    let keys = &first.policy.prefixes;
    let edits = edit_lists(&mut set, &lists, &changes, keys, prefix.into(), 50);
    let took = began.elapsed();
    println!("a ban beside a million: {took:?}");
    assert_eq!(edits.len(), 1);
    let most = if cfg!(debug_assertions) { 1000 } else { 10 };
    assert!(took < Duration::from_millis(most), "{took:?}");
}
