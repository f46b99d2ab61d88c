//! A policy with a million banned prefixes in the kernel: how long it takes to load and to change, and what it takes.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use integration_tests::{
    kernel::{Kernel, Shape},
    packets::HOST,
    policies::{self, Rules, per_second},
    world::Action,
};
use limiter_common::{address::Address, source::Prefixes, standing::Entry};
use limiter_lab::frame::Frame;
use limiter_policy::{
    changes::{Changes, OperatorBan},
    compile::{LoadedPrefixes, edit_lists},
    prefix::Prefix,
};
use limiter_userspace::kernel::{apply::Enforcer, prefix_map::memory};

const MILLION: usize = 1_000_000;

/// A million addresses, none of which is in 10.0.0.0/8.
fn million(seed: u64) -> Vec<Prefix> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut addresses = BTreeSet::new();
    while addresses.len() < MILLION {
        let address = random.u32(1 << 24..0xe000_0000);
        if address >> 24 != 10 && address >> 24 != 127 {
            addresses.insert(address);
        }
    }
    let prefixes = addresses.into_iter().map(|address| v4(address, 32));
    prefixes.collect()
}

fn v4(address: u32, length: u8) -> Prefix {
    Prefix::new(Address::from_v4(address), 96 + length)
}

fn banning(ban: Vec<Prefix>) -> Rules {
    let mut rules = policies::packets(per_second(1_000), 2_000);
    rules.prefixes.ban = ban;
    rules
}

fn timed<T>(what: &str, action: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let result = action();
    let taken = started.elapsed();
    println!("{what}: {taken:.1?}");
    (result, taken)
}

/// An unoptimized build takes longer: it also checks that a million prefixes are sorted, each time.
const SLOWER: u32 = if cfg!(debug_assertions) { 20 } else { 1 };

/// On a busy machine one may lose its turn: nine of ten must be quick.
fn assert_mostly_within(what: &str, mut times: Vec<Duration>, most: Duration) {
    times.sort_unstable();
    let [usual, slow, slowest] =
        [50, 90, 100].map(|percent| times[(times.len() - 1) * percent / 100]);
    println!(
        "{} {what}: half within {usual:.1?}, nine of ten within {slow:.1?}, all within {slowest:.1?}",
        times.len()
    );
    assert!(slow < SLOWER * most, "{what}: {slow:?}");
}

/// Two millions at once would wait for each other's memory.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bans one address in place, or lifts its ban, as `limiter ban` and `limiter unban` do.
fn ban_one(enforcer: &Enforcer, loaded: &LoadedPrefixes, address: u32, banned: bool) -> Duration {
    let mut changes = Changes::default();
    if banned {
        let prefix = std::net::Ipv4Addr::from(address).into();
        changes.bans.push(OperatorBan {
            prefix: std::net::IpAddr::into(prefix),
            until: None,
        });
    }
    let started = Instant::now();
    let edited = enforcer.edit_lists(|lists, keys: &Prefixes| -> Vec<(Prefix, Option<Entry>)> {
        edit_lists(lists, loaded, &changes, keys, v4(address, 32), 0)
    });
    assert!(edited.expect("edited"), "in place");
    started.elapsed()
}

fn passes(kernel: &Kernel, address: u32) -> bool {
    let frame = Frame::ipv4(address.to_be_bytes(), HOST).udp(1, 2).build();
    kernel.verdict(&frame) == Action::Pass
}

#[test]
fn a_million_prefixes() {
    const NEWCOMER: u32 = 10 << 24 | 7;
    let _alone = alone();
    let mut kernel = Kernel::load(Shape::default(), &banning(Vec::new()));
    let rules = banning(million(1));
    let bytes = memory::bytes::<Entry>(MILLION);
    println!(
        "memory: {} MB stated for {MILLION} prefixes",
        bytes / 1_000_000
    );
    let (compiled, compile) = timed("compile", || kernel.compile(&rules));
    let (written, load) = timed("load", || kernel.enforcer().apply(compiled, false));
    assert_eq!(written.expect("loaded"), MILLION);
    assert!(compile + load < Duration::from_secs(10));
    let listed = rules.prefixes.ban[MILLION / 2].address.v4_bits();
    assert!(!passes(&kernel, listed) && passes(&kernel, NEWCOMER));

    let mut times = Vec::new();
    for _ in 0..10 {
        for banned in [true, false] {
            let took = ban_one(kernel.enforcer(), &rules.prefixes, NEWCOMER, banned);
            assert_eq!(passes(&kernel, NEWCOMER), !banned, "at once");
            times.push(took);
        }
    }
    assert_mostly_within(
        "one address banned or not",
        times,
        Duration::from_millis(10),
    );

    // A file that has changed by a line: read and compiled as a whole, applied by difference.
    let mut more = rules.clone();
    more.prefixes.ban.push(v4(NEWCOMER, 32));
    more.prefixes.sort();
    for (rules, expected) in [(&more, false), (&rules, true)] {
        let (compiled, _) = timed("compile with one changed", || kernel.compile(rules));
        let (written, _) = timed("apply one", || kernel.enforcer().apply(compiled, false));
        assert_eq!(written.expect("applied"), 1, "nothing rebuilds a million");
        assert_eq!(passes(&kernel, NEWCOMER), expected);
    }
}

/// A ban is in force at once while another million prefixes are being loaded, and holds when they are.
#[test]
fn live_bans_do_not_wait_for_a_bulk_load() {
    let _alone = alone();
    let mut kernel = Kernel::load(Shape::default(), &banning(million(1)));
    let compiled = kernel.compile(&banning(million(2)));
    let loaded = banning(million(1)).prefixes;
    let [begun, done] = [AtomicBool::new(false), AtomicBool::new(false)];
    let mut times = Vec::new();
    let mut banned = Vec::new();
    let kernel = &kernel;
    thread::scope(|scope| {
        let (begun, done) = (&begun, &done);
        scope.spawn(move || {
            let change = kernel.enforcer().begin();
            begun.store(true, Ordering::SeqCst);
            let written = change.apply(compiled, false);
            done.store(true, Ordering::SeqCst);
            written.expect("loaded")
        });
        while !begun.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        for address in 10 << 24.. {
            if done.load(Ordering::SeqCst) {
                break;
            }
            times.push(ban_one(kernel.enforcer(), &loaded, address, true));
            assert!(!passes(kernel, address), "banned at once");
            banned.push(address);
            thread::sleep(Duration::from_millis(5));
        }
    });
    assert!(times.len() > 10, "{}", times.len());
    assert_mostly_within("bans during the load", times, Duration::from_millis(100));
    // The last may have come after the flip; it holds, too.
    let lost: Vec<_> = banned
        .iter()
        .filter(|address| passes(kernel, **address))
        .collect();
    assert!(lost.is_empty(), "{lost:?} of {banned:?}");
}
