//! Policies replaced while packets flow on another thread: each packet is judged by one policy, wholly, and who is banned
//! under both never gets through.

use std::{
    net::Ipv4Addr,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Instant,
};

use integration_tests::{
    counted::{assert_adds_up, named},
    kernel::{Kernel, Shape},
    policies::Rules,
    senders::{sender, udp},
    world::World as _,
};
use limiter_common::{
    counters::{LimitCounters, Reason},
    policy::Place,
};
use limiter_policy::{changes::OperatorBan, compile::Compiled};

/// Packets in one call: few enough that a flip comes between any two calls.
const AT_ONCE: u32 = 200;
/// Who is in the class of each policy, and who is in none.
const KNOWN: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const UNKNOWN: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// A policy that admits `burst` packets of a source, and twice as many of one in its class, within a ceiling that all of
/// that fits in. `before` are limits that come before its own, so that these have other numbers than another policy's.
fn two_sizes(name: &str, burst: u32, before: &str) -> Rules {
    let (known, all) = (2 * burst, 4 * burst);
    Rules::from_file(&format!(
        r#"
        [classes]
        {name}-class.sources = ["{KNOWN}"]

        {before}
        [[limits]]
        name = "{name}-all"
        per = "everyone"
        rate = "1/d"
        burst = {all}

        [[limits]]
        name = "{name}-each"
        per = "source"
        rate = "1/d"
        burst = {burst}
        classes.{name}-class = {{ rate = "1/d", burst = {known} }}
        "#
    ))
}

/// Sends packets on a thread of their own while `change` runs; returns how many.
fn while_packets_flow(kernel: &Kernel, frames: &[Vec<u8>], change: impl FnOnce(&AtomicU64)) -> u64 {
    let stop = AtomicBool::new(false);
    let sent = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for frame in frames {
                    kernel.flood(frame, AT_ONCE);
                    sent.fetch_add(AT_ONCE.into(), Ordering::Relaxed);
                }
            }
        });
        change(&sent);
        stop.store(true, Ordering::Relaxed);
    });
    sent.into_inner()
}

/// Waits until packets have come in.
fn wait_for_packets(sent: &AtomicU64) {
    let before = sent.load(Ordering::Relaxed);
    while sent.load(Ordering::Relaxed) < before + 3 * u64::from(AT_ONCE) {
        thread::yield_now();
    }
}

/// Of a source in no class, a policy admits 10 or 10,000 packets in all, of one in the class 20 or 20,000: a packet judged
/// by a bit of each policy would be admitted by the wrong bucket, or be counted by one of the limits only.
#[test]
fn of_a_thousand_flips_no_packet_sees_a_mixture() {
    const FLIPS: u32 = 1_000;
    const ANOTHER: &str = "[[limits]]\nname = \"icmp\"\npackets = \"icmp\"\nper = \"source\"\nrate = \"1/d\"\nburst = 1";
    let few = two_sizes("few", 10, "");
    let many = two_sizes("many", 10_000, ANOTHER);
    let mut kernel = Kernel::load(Shape::default().with_slots(5), &few);
    kernel.attach_aside();
    let policies = [kernel.compile(&many), kernel.compile(&few)];
    let frames = [udp(KNOWN, 53), udp(UNKNOWN, 53)];
    let started = Instant::now();
    let sent = while_packets_flow(&kernel, &frames, |sent| {
        for (flip, policy) in (0..FLIPS).zip(policies.iter().cycle()) {
            kernel
                .enforcer()
                .apply(policy.clone(), false)
                .expect("flipped");
            if flip % 10 == 0 {
                wait_for_packets(sent);
            }
        }
    });
    // Both policies have had their fill: what is missing comes in now.
    for policy in &policies {
        kernel
            .enforcer()
            .apply(policy.clone(), false)
            .expect("flipped");
        for frame in &frames {
            kernel.flood(frame, 30_000);
        }
    }
    println!(
        "{FLIPS} flips in {:?}, {sent} packets meanwhile",
        started.elapsed()
    );
    let counters = kernel.counters();
    assert_adds_up(&counters);
    let of = |compiled: &Compiled| {
        let number = |place| {
            compiled
                .limits
                .iter()
                .rposition(|limit| limit.place == place)
        };
        [Place::Source, Place::Shared].map(|place| {
            let limit = compiled.policy.limits[number(place).expect("a limit")];
            counters.limits[limit.counter as usize]
        })
    };
    let mut judged = 0;
    for (policy, admitted) in policies.iter().zip([30_000, 30]) {
        let [each, all] = of(policy);
        let found = format!("{:#?}", named(&counters));
        assert_eq!((each.passed, all.passed), (admitted, admitted), "{found}");
        assert_eq!(all.dropped, 0, "{found}");
        judged += each.passed + each.dropped;
    }
    assert_eq!(judged, counters.seen, "each packet by one policy");
    assert_eq!(
        counters.dropped[Reason::Limit as usize],
        counters.seen - 30_030
    );
}

/// Who is banned: in the policy, by an operator for a time, and by a limit.
fn banning(rate: &str, others: &[&str]) -> Rules {
    let mut rules = Rules::from_file(&format!(
        r#"
        ban = ["{}"]

        [[limits]]
        name = "each"
        per = "source"
        rate = "{rate}"
        burst = 1000
        on_exceed = {{ ban = "365d", after = 1, spoofable = true }}
        "#,
        sender(1)
    ));
    let forever = |prefix: &str| OperatorBan {
        prefix: prefix.parse().expect("a prefix"),
        until: Some(u64::MAX / 2),
    };
    rules.changes.bans = vec![forever("203.0.113.2/32")];
    rules
        .changes
        .bans
        .extend(others.iter().copied().map(forever));
    rules
}

#[test]
fn of_a_million_packets_of_a_banned_source_none_pass_while_the_policy_is_reloaded() {
    const PACKETS: u64 = 1_000_000;
    let shape = Shape::default().with_slots(5);
    let mut kernel = Kernel::load(shape, &banning("1000/s", &[]));
    kernel.attach_aside();
    let frames = [1, 2, 3].map(|number| udp(sender(number), 53));
    // The third is banned by the limit.
    kernel.flood(&frames[2], 2_000);
    assert_eq!(kernel.bans().len(), 1);
    let before = kernel.counters();
    // The same again, in place; another ban, in place; another rate, built aside and flipped.
    let variants = [
        banning("1000/s", &[]),
        banning("1000/s", &[]),
        banning("1000/s", &["198.51.100.0/24"]),
        banning("2000/s", &["198.51.100.0/24"]),
        banning("2000/s", &[]),
    ]
    .map(|rules| kernel.compile(&rules));
    let mut reloads = 0;
    while_packets_flow(&kernel, &frames, |sent| {
        while sent.load(Ordering::Relaxed) < 3 * PACKETS {
            let next = variants[reloads % variants.len()].clone();
            kernel.enforcer().apply(next, false).expect("reloaded");
            reloads += 1;
        }
    });
    let counters = kernel.counters();
    let sent = counters.seen - before.seen;
    println!("{sent} packets of three banned sources, {reloads} reloads");
    assert!(sent >= 3 * PACKETS && reloads >= 100);
    assert_eq!(counters.passed, before.passed, "{:#?}", named(&counters));
    let banned = |counters: &[u64; Reason::COUNT]| counters[Reason::Ban as usize];
    assert_eq!(banned(&counters.dropped) - banned(&before.dropped), sent);
}

/// A reload takes nothing from anybody and gives nothing to anybody.
#[test]
fn a_reload_in_a_loop_loses_and_leaks_no_packet() {
    const BURST: u64 = 500_000;
    let rules = |other: u32| {
        Rules::from_file(&format!(
            "[[limits]]\nname = \"each\"\nper = \"source\"\nrate = \"1/d\"\nburst = {BURST}\n[[limits]]\nname = \
             \"other\"\npackets = \"icmp\"\nper = \"source\"\nrate = \"{other}/s\"\nburst = 10\n"
        ))
    };
    let mut kernel = Kernel::load(Shape::default().with_slots(5), &rules(1));
    kernel.attach_aside();
    let variants = [rules(2), rules(1)].map(|rules| kernel.compile(&rules));
    let frames = [udp(sender(1), 53)];
    let mut reloads = 0;
    while_packets_flow(&kernel, &frames, |sent| {
        while sent.load(Ordering::Relaxed) < 2 * BURST {
            let next = variants[reloads % 2].clone();
            kernel.enforcer().apply(next, false).expect("reloaded");
            reloads += 1;
        }
    });
    println!("{reloads} reloads");
    let LimitCounters { passed, .. } = kernel.limit("each");
    assert!(reloads >= 20);
    assert_eq!(passed, BURST);
    assert_adds_up(&kernel.counters());
}
