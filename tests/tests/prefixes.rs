//! Prefix sets in the kernel: what they hold, how fast they change, what they take.

use std::{
    collections::HashSet,
    fs,
    os::fd::AsFd,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use aya::{
    Pod,
    maps::{HashMap, IterableMap as _, LpmTrie, MapData, lpm_trie::Key},
};
use limiter_common::{
    address::Address,
    standing::{Entry, Listed, Membership},
};
use limiter_policy::{
    lists::{self, Delta, difference},
    prefix::{Prefix, PrefixSet},
};
use limiter_userspace::kernel::prefix_map::{MAX_PREFIXES, PrefixMap, memory};

const BPF_F_NO_PREALLOC: u32 = 1;
const MILLION: usize = 1_000_000;

const BANNED: Entry = Entry {
    listed: Listed::Banned as u32,
    split: 0,
    until: 0,
    then: 0,
    zero: 0,
};

type Trie<V> = LpmTrie<MapData, [u8; 16], V>;

fn data(fd: impl AsFd) -> MapData {
    let fd = fd.as_fd().try_clone_to_owned().expect("a descriptor");
    MapData::from_fd(fd).expect("a map")
}

/// A set as the program has it, and the same map as the kernel's look-ups see it.
fn create<V: Pod + Default>(most: u32) -> (PrefixMap<V>, Trie<V>) {
    let trie = Trie::create(most, BPF_F_NO_PREALLOC).expect("a trie; these tests need root");
    let map = PrefixMap::new(data(trie.map().fd())).expect("a prefix set");
    (map, trie)
}

fn from_nothing<V: Copy + PartialEq>(set: &PrefixSet<V>) -> Delta<V> {
    difference(&PrefixSet::default(), set)
}

fn v4(random: &mut fastrand::Rng) -> Prefix {
    Prefix::new(Address::from_v4(random.u32(..)), 128)
}

/// IPv4 /16 to /32 and IPv6 /24 to /64.
fn mixed(random: &mut fastrand::Rng) -> Prefix {
    if random.bool() {
        Prefix::new(Address::from_v4(random.u32(..)), random.u8(112..=128))
    } else {
        let high = 0x2000_u64 << 48 | random.u64(..) >> 3;
        Prefix::new(Address { high, low: 0 }, random.u8(24..=64))
    }
}

fn distinct(count: usize, mut next: impl FnMut() -> Prefix) -> Vec<Prefix> {
    let mut seen = HashSet::new();
    while seen.len() < count {
        seen.insert(next());
    }
    let mut prefixes: Vec<Prefix> = seen.into_iter().collect();
    prefixes.sort_unstable();
    prefixes
}

fn set_of<V: Copy>(prefixes: &[Prefix], value: V) -> PrefixSet<V> {
    PrefixSet::new(prefixes.iter().map(|prefix| (*prefix, value)).collect())
}

/// A few thousand prefixes, many of them inside others, with values of all kinds.
fn crowd(random: &mut fastrand::Rng) -> PrefixSet<Membership> {
    let entries = (0..random.usize(0..6_000)).map(|_| {
        let address = Address::from_v4(0x0a00_0000 | random.u32(..1 << 14));
        let membership = Membership {
            chain: random.u32(0..3),
            split: 0,
        };
        (Prefix::new(address, random.u8(100..=128)), membership)
    });
    PrefixSet::new(entries.collect())
}

#[test]
fn the_kernel_holds_what_the_set_says_after_any_change() {
    let mut random = fastrand::Rng::with_seed(7);
    let (map, trie) = create::<Membership>(MAX_PREFIXES);
    let mut held = PrefixSet::default();
    for _ in 0..20 {
        let next = crowd(&mut random);
        map.apply(&difference(&held, &next)).expect("applied");
        assert_eq!(map.read().expect("read"), next);
        for _ in 0..500 {
            let address = Address::from_v4(0x0a00_0000 | random.u32(..1 << 14));
            let bits = u128::from(address.high) << 64 | u128::from(address.low);
            let found = trie.get(&Key::new(128, bits.to_be_bytes()), 0).ok();
            let expected = next.longest(address).map(|(_, value)| *value);
            assert_eq!(found, expected, "{address}");
        }
        held = next;
    }
    assert_eq!(map.clear().expect("cleared"), held.entries().len());
    assert!(map.read().expect("read").is_empty());
    assert_eq!(map.clear().expect("cleared"), 0);
}

#[test]
fn prefixes_of_every_length_are_exact() {
    let (map, _) = create::<Membership>(MAX_PREFIXES);
    let ones = Address {
        high: u64::MAX,
        low: u64::MAX,
    };
    let zeros = Address { high: 0, low: 0 };
    let every =
        (0..=128).flat_map(|length| [ones, zeros].map(|address| Prefix::new(address, length)));
    let set = set_of(
        &every.collect::<Vec<_>>(),
        Membership { chain: 9, split: 0 },
    );
    map.apply(&from_nothing(&set)).expect("applied");
    assert_eq!(map.read().expect("read"), set);
}

#[test]
fn a_change_may_be_made_again() {
    let (map, _) = create::<Entry>(MAX_PREFIXES);
    let prefixes = distinct(10_000, {
        let mut random = fastrand::Rng::with_seed(2);
        move || mixed(&mut random)
    });
    let (some, others) = prefixes.split_at(5_000);
    let (old, new) = (set_of(some, BANNED), set_of(others, BANNED));
    map.apply(&from_nothing(&old)).expect("applied");
    let delta = difference(&old, &new);
    for _ in 0..2 {
        map.apply(&delta).expect("applied");
        assert_eq!(map.read().expect("read"), new);
    }
    // Half of it is undone: what a removal does not find is no failure.
    for prefix in some.iter().step_by(2) {
        map.set(*prefix, BANNED).expect("set");
    }
    map.apply(&delta).expect("applied");
    assert_eq!(map.read().expect("read"), new);
    assert!(map.remove(others[0]).expect("removed"));
    assert!(!map.remove(others[0]).expect("removed"));
}

#[test]
fn a_full_set_says_so_and_keeps_what_it_holds() {
    let (map, _) = create::<Entry>(10);
    let prefixes: Vec<Prefix> = (0..11)
        .map(|number| Prefix::new(Address::from_v4(0xc633_6400 + number), 128))
        .collect();
    let error = map.apply(&from_nothing(&set_of(&prefixes, BANNED)));
    assert_eq!(
        error.expect_err("one too many").to_string(),
        "198.51.100.10: the prefix set is full with 10 prefixes; shorten the lists, or join neighbours in them"
    );
    assert_eq!(map.read().expect("read"), set_of(&prefixes[..10], BANNED));
}

#[test]
fn only_a_trie_of_addresses_with_such_values_is_a_set() {
    let trie = Trie::<Entry>::create(1, BPF_F_NO_PREALLOC).expect("a trie");
    let error = PrefixMap::<Membership>::new(data(trie.map().fd())).expect_err("another value");
    assert_eq!(
        error.to_string(),
        "not a trie of addresses with values of 8 bytes"
    );
    let short = LpmTrie::<MapData, u32, Entry>::create(1, BPF_F_NO_PREALLOC).expect("a trie");
    assert!(PrefixMap::<Entry>::new(data(short.map().fd())).is_err());
    let hash = HashMap::<MapData, [u8; 20], Entry>::create(1, 0).expect("a hash map");
    assert!(PrefixMap::<Entry>::new(data(hash.map().fd())).is_err());
}

/// What the kernel's allocator holds for itself, in bytes.
fn slabs() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").expect("meminfo");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("SUnreclaim:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kibibytes.expect("a size").parse::<u64>().expect("a number") * 1024
}

fn timed<T>(what: &str, action: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let result = action();
    let taken = started.elapsed();
    println!("  {what}: {taken:.1?}");
    (result, taken)
}

/// Makes single changes while `busy` does something: nearly all must be quick. On a machine with few CPUs, one may lose
/// its turn.
fn edit_while(what: &str, map: &PrefixMap<Entry>, busy: impl FnOnce() + Send) {
    let stop = AtomicBool::new(false);
    let mut times = Vec::new();
    thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            busy();
            stop.store(true, Ordering::Relaxed);
        });
        let mut random = fastrand::Rng::with_seed(9);
        while !stop.load(Ordering::Relaxed) {
            let prefix = Prefix::new(Address::from_v4(0x0a00_0000 | random.u32(..1 << 24)), 128);
            let started = Instant::now();
            map.set(prefix, BANNED).expect("set");
            times.push(started.elapsed());
            let started = Instant::now();
            assert!(map.remove(prefix).expect("removed"));
            times.push(started.elapsed());
            thread::sleep(Duration::from_micros(200));
        }
    });
    times.sort_unstable();
    let usual = times[times.len() / 2];
    let slow = times[times.len() * 999 / 1000];
    let slowest = times[times.len() - 1];
    println!(
        "  {} single changes during {what}: half within {usual:.1?}, 99.9 % within {slow:.1?}, all within {slowest:.1?}",
        times.len()
    );
    assert!(slow < Duration::from_millis(10), "{slow:?}");
}

fn a_million(what: &str, mut next: impl FnMut() -> Prefix) {
    let mut prefixes = distinct(MILLION + 1, &mut next);
    // Addresses of the single changes are not among them.
    prefixes.retain(|prefix| !(prefix.address.is_mapped() && prefix.address.v4_bits() >> 24 == 10));
    let one = prefixes.swap_remove(prefixes.len() / 2);
    let set = set_of(&prefixes, BANNED);
    println!("{what}: {} prefixes", prefixes.len());
    let lines: Vec<String> = prefixes.iter().map(Prefix::to_string).collect();
    let text = lines.join("\n");
    let (parsed, _) = timed("read from text", || lists::parse(text.as_bytes()));
    assert_eq!(parsed.prefixes.len() + parsed.too_wide, prefixes.len());

    let (map, _trie) = create::<Entry>(MAX_PREFIXES);
    let stated = memory::bytes::<Entry>(prefixes.len());
    let before = slabs();
    let (result, load) = timed("load", || map.apply(&from_nothing(&set)));
    result.expect("loaded");
    let taken = slabs().saturating_sub(before);
    println!(
        "  memory: {} MB stated, {} MB taken",
        stated / 1_000_000,
        taken / 1_000_000
    );
    assert!(
        load < Duration::from_secs(10),
        "a million within 10 s: {load:?}"
    );
    assert!(
        taken <= stated + stated / 10,
        "{taken} bytes, {stated} stated"
    );

    let mut more = prefixes.clone();
    more.push(one);
    let more = set_of(&more, BANNED);
    for (what, old, new) in [("add one", &set, &more), ("remove one", &more, &set)] {
        let (delta, _) = timed(&format!("{what}: difference"), || difference(old, new));
        assert_eq!(delta.len(), 1);
        // The machine may be busy with something else for a moment; the same may be applied again.
        let apply = |_| {
            let (result, edit) = timed(&format!("{what}: apply"), || map.apply(&delta));
            result.expect("applied");
            edit
        };
        let edit = (0..3).map(apply).min().expect("three tries");
        assert!(edit < Duration::from_millis(10), "{edit:?}");
    }
    let (read, _) = timed("copy from the kernel", || map.read().expect("read"));
    assert_eq!(read, set);

    let (other, trie) = create::<Entry>(MAX_PREFIXES);
    let load = || other.apply(&from_nothing(&set)).expect("loaded");
    edit_while("a load of another set", &map, load);
    let clear = || assert_eq!(other.clear().expect("cleared"), prefixes.len());
    timed("clear", clear);
    let one_by_one = || {
        for (prefix, value) in set.entries() {
            other.set(*prefix, *value).expect("set");
        }
    };
    // As on a kernel without batches for tries.
    let ((), load) = timed("load one by one", one_by_one);
    assert!(load < Duration::from_secs(10), "{load:?}");
    clear();
    let load = || other.apply(&from_nothing(&set)).expect("loaded");
    edit_while("a load of the same set", &other, load);
    assert_eq!(other.read().expect("read"), set, "none of it is lost");
    timed("give back", move || drop((other, trie)));
}

#[test]
fn a_million_addresses() {
    let mut random = fastrand::Rng::with_seed(1);
    a_million("IPv4 addresses", || v4(&mut random));
    a_million("prefixes of both families", || mixed(&mut random));
}
