//! What the tables do over time, where a packet more or less would not show it.

#[expect(dead_code, reason = "each test uses a part of it")]
mod world;

use limiter_common::{
    address::Address, counters::Reason, judge::Verdict, needs::Need, standing::Listed,
};
use limiter_policy::{
    changes::{Changes, Override},
    compile::{LoadedPrefixes, compile},
    host::{Explained, HostTables, explain},
    identities::Identities,
    spec::{BanSpec, ClassTerms, Mode, PolicySpec, Terms},
};

use self::world::{
    SECOND, bucket, class,
    frames::{self, Fragment, Upper},
    limit, loaded, spec, terms,
};

/// Tables with a daemon that keeps their numbers.
struct Host {
    tables: HostTables,
    identities: Identities,
}

impl Host {
    fn new(spec: &PolicySpec, prefixes: &LoadedPrefixes, changes: &Changes) -> Self {
        let mut identities = Identities::default();
        let compiled = compile(spec, prefixes, changes, &mut identities, 0).unwrap();
        Self {
            tables: HostTables::new(compiled),
            identities,
        }
    }

    fn reload(&mut self, spec: &PolicySpec) {
        let nobody = LoadedPrefixes::default();
        let compiled = compile(
            spec,
            &nobody,
            &Changes::default(),
            &mut self.identities,
            self.tables.time(),
        );
        self.tables.replace(compiled.unwrap());
    }

    /// How many of these packets from a source pass at a time.
    fn passes(&mut self, source: &str, packets: u32, time: u64) -> u32 {
        self.tables.set_time(time);
        let frame = frames::udp(source, 53);
        (0..packets)
            .map(|_| u32::from(self.tables.judge_frame(&frame) == Verdict::Pass))
            .sum()
    }

    fn explain(&self, source: &str) -> Explained {
        explain(&self.tables, &frames::udp(source, 53)).unwrap()
    }
}

fn plain(terms: Terms) -> PolicySpec {
    PolicySpec {
        limits: vec![limit("x", terms)],
        ..spec()
    }
}

#[test]
fn a_changed_rate_converts_tokens_not_time() {
    let nobody = LoadedPrefixes::default();
    let mut host = Host::new(&plain(bucket("1/h", "3")), &nobody, &Changes::default());
    let begin = 1000 * SECOND;
    assert_eq!(host.passes("198.51.100.7", 5, begin), 3);
    host.reload(&plain(bucket("1000/s", "3")));
    assert_eq!(host.passes("198.51.100.7", 5, begin + 1), 0, "still empty");
    assert_eq!(host.passes("198.51.100.7", 5, begin + SECOND / 100), 3);
    host.reload(&plain(bucket("1/h", "3")));
    assert_eq!(host.passes("198.51.100.7", 5, begin + SECOND / 100), 0);
    assert_eq!(
        host.passes("198.51.100.7", 5, begin + 60 * SECOND),
        0,
        "stays empty"
    );
}

#[test]
fn a_changed_ceiling_of_the_needs_begins_anew() {
    let nobody = LoadedPrefixes::default();
    let fast = PolicySpec {
        needs: bucket("1000/s", "2"),
        ..spec()
    };
    let mut host = Host::new(&fast, &nobody, &Changes::default());
    host.tables.set_time(1000 * SECOND);
    let passed = |host: &mut Host| {
        (0..5)
            .map(|_| host.tables.judge_frame(&frames::arp()))
            .filter(|verdict| *verdict == Verdict::Pass)
            .count()
    };
    assert_eq!(passed(&mut host), 2);
    host.reload(&PolicySpec {
        needs: bucket("1/h", "3"),
        ..spec()
    });
    assert_eq!(
        passed(&mut host),
        3,
        "a word of another meter means nothing"
    );
    assert_eq!(host.tables.counters().needs_passed[Need::Arp as usize], 5);
}

/// A limit that bans for a second at the first refusal.
fn banning() -> PolicySpec {
    let mut policy = plain(bucket("1/h", "1"));
    policy.limits[0].on_exceed = Some(BanSpec {
        length: SECOND,
        after: 1,
        doubles: false,
    });
    policy
}

#[test]
fn a_ban_holds_for_its_own_part_of_a_split_source() {
    let mut policy = banning();
    policy.sources.ipv4_prefix = 24;
    policy.classes.push(class("gold"));
    policy.limits[0].classes.insert(0, ClassTerms::Exempt);
    let prefixes = loaded(&["198.51.100.7/32"]);
    let mut host = Host::new(&policy, &prefixes, &Changes::default());
    assert_eq!(host.passes("198.51.100.8", 5, SECOND), 1);
    assert_eq!(
        host.explain("198.51.100.9").listed,
        Listed::Banned,
        "the same source"
    );
    assert_eq!(host.explain("198.51.100.7").listed, Listed::No);
    assert_eq!(
        host.passes("198.51.100.7", 5, SECOND),
        5,
        "exempt, and not banned"
    );
    assert_eq!(host.tables.bans().len(), 1);
}

#[test]
fn long_bans_that_double_do_not_overflow() {
    let mut policy = banning();
    policy.limits[0].on_exceed = Some(BanSpec {
        length: u64::MAX / 64,
        after: 1,
        doubles: true,
    });
    let nobody = LoadedPrefixes::default();
    let mut host = Host::new(&policy, &nobody, &Changes::default());
    let mut time = SECOND;
    let mut last = 0;
    loop {
        assert_eq!(
            host.passes("198.51.100.7", 3, time),
            1,
            "full again, then banned"
        );
        let ban = *host.tables.bans().values().next().unwrap();
        if ban.until == u64::MAX {
            break;
        }
        assert!(ban.until - ban.since >= last, "{ban:?}");
        last = ban.until - ban.since;
        time = ban.until;
    }
}

#[test]
fn refusals_never_reach_the_meter_beside_them() {
    let mut policy = banning();
    policy.limits[0].on_exceed = Some(BanSpec {
        length: SECOND,
        after: u32::MAX,
        doubles: false,
    });
    let nobody = LoadedPrefixes::default();
    let mut host = Host::new(&policy, &nobody, &Changes::default());
    assert_eq!(host.passes("198.51.100.7", 2, SECOND), 1);
    let key = host.explain("198.51.100.7").key;
    let mut copy = host.tables.source_copy(&key).unwrap();
    copy.slots[0].note |= u64::from(u32::MAX);
    host.tables.set_source(key, &copy);
    assert_eq!(host.passes("198.51.100.7", 5, SECOND), 0);
    let after = host.tables.source_copy(&key).unwrap();
    assert_eq!(after.slots[0].note >> 32, copy.slots[0].note >> 32);
}

#[test]
fn overrides_end_by_themselves_one_after_the_other() {
    let mut policy = plain(bucket("1/h", "1"));
    policy.classes.push(class("gold"));
    policy.limits[0].classes.insert(0, ClassTerms::Exempt);
    let change = |source: &str, burst: &str, until| Override {
        limit: "x".to_owned(),
        source: Some(source.parse().unwrap()),
        terms: bucket("1/h", burst),
        until: until * SECOND,
    };
    let changes = Changes {
        bans: Vec::new(),
        overrides: vec![
            change("198.51.100.7/32", "2", 10),
            change("198.51.100.0/24", "5", 20),
        ],
    };
    let prefixes = loaded(&["198.51.0.0/16"]);
    let mut host = Host::new(&policy, &prefixes, &changes);
    assert_eq!(host.passes("198.51.100.7", 9, SECOND), 2);
    assert_eq!(host.explain("198.51.100.7").limits[0].until, 10 * SECOND);
    let second = 10 * SECOND;
    assert_eq!(
        host.passes("198.51.100.7", 9, second),
        3,
        "owes two of five"
    );
    let counted = host.tables.counters().limits[0];
    assert_eq!((counted.passed, counted.dropped), (5, 13));
    assert_eq!(host.passes("198.51.100.7", 9, 20 * SECOND), 9, "exempt");
    assert_eq!(
        host.tables.counters().limits[0],
        counted,
        "exempt is not counted"
    );
    assert_eq!(host.explain("198.51.100.7").limits[0].decision, None);
}

#[test]
fn malformed_packets_are_charged_but_never_counted_as_passed() {
    let nobody = LoadedPrefixes::default();
    let mut host = Host::new(&plain(bucket("1/h", "3")), &nobody, &Changes::default());
    host.tables.set_time(SECOND);
    let cut = frames::packet(
        "198.51.100.7".parse().unwrap(),
        "10.0.0.1".parse().unwrap(),
        &Upper::Cut,
        Fragment::No,
    );
    assert_eq!(
        host.tables.judge_frame(&cut),
        Verdict::Drop(Reason::Malformed)
    );
    assert_eq!(host.tables.counters().limits[0].passed, 0);
    assert_eq!(host.passes("198.51.100.7", 9, SECOND), 2);
}

#[test]
fn numbers_given_to_another_name_are_cleared() {
    let names = |turn: u32| {
        let limits = (0..8).map(|number| {
            let mut limit = limit(&format!("n{turn}-{number}"), bucket("1/h", "1"));
            limit.mode = Mode::Monitor;
            limit
        });
        PolicySpec {
            limits: limits.collect(),
            ..spec()
        }
    };
    let nobody = LoadedPrefixes::default();
    let mut host = Host::new(&names(0), &nobody, &Changes::default());
    for turn in 1..20 {
        assert_eq!(host.passes("198.51.100.7", 2, SECOND), 2);
        let counted = host.tables.counters().limits;
        for limit in &host.tables.compiled().policy.limits[..8] {
            let counted = counted[limit.counter as usize];
            assert_eq!((counted.passed, counted.would_drop), (2, 1), "as a new one");
        }
        host.reload(&names(turn));
    }
}

#[test]
fn explaining_takes_nothing_and_says_when() {
    let mut policy = plain(bucket("1/s", "2"));
    policy
        .limits
        .push(limit("log", terms("sliding-log", "3/min", "")));
    let nobody = LoadedPrefixes::default();
    let mut host = Host::new(&policy, &nobody, &Changes::default());
    let begin = 60 * SECOND;
    for left in [1, 0] {
        host.tables.set_time(begin);
        for _ in 0..3 {
            let decision = host.explain("198.51.100.7").limits[0].decision.unwrap();
            assert!(decision.allowed);
            assert_eq!(decision.remaining, left);
        }
        assert_eq!(host.passes("198.51.100.7", 1, begin), 1);
    }
    let explained = host.explain("198.51.100.7");
    assert_eq!(explained.refused_by().unwrap().name, "x");
    let [bucket, log] = [0, 1].map(|limit| explained.limits[limit].decision.unwrap());
    assert_eq!(bucket.retry_after, Some(SECOND));
    assert_eq!((log.allowed, log.remaining), (true, 0));
    assert_eq!(host.passes("198.51.100.7", 1, begin + SECOND), 1);
    let explained = host.explain("198.51.100.7");
    assert_eq!(
        explained.limits[1].decision.unwrap().retry_after,
        Some(59 * SECOND)
    );
}

#[test]
fn live_state_may_be_copied_in() {
    let policy = plain(bucket("1/h", "5"));
    let nobody = LoadedPrefixes::default();
    let mut live = Host::new(&policy, &nobody, &Changes::default());
    live.passes("198.51.100.7", 3, SECOND);
    let mut copy = Host::new(&policy, &nobody, &Changes::default());
    let address: std::net::IpAddr = "198.51.100.7".parse().unwrap();
    let key = copy.tables.key_of(Address::from(address));
    copy.tables
        .set_source(key, &live.tables.source_copy(&key).unwrap());
    assert_eq!(copy.passes("198.51.100.7", 9, SECOND), 2);
}
