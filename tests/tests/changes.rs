//! Changes at run time: what holds at once, what stays, what ends by itself.

use integration_tests::{
    check::in_both_worlds,
    policies::{self, Rules, terms},
    senders::{sender, udp},
    world::{BEGIN, passed},
};
use limiter_policy::changes::Override;

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

fn limited(rate: &str) -> Rules {
    Rules::from_file(&format!(
        "[[limits]]\nname = \"limit\"\nper = \"source\"\nrate = \"{rate}\"\nburst = 20\n"
    ))
}

fn frame() -> Vec<u8> {
    udp(sender(1), 53)
}

#[test]
fn a_bucket_empty_at_one_an_hour_passes_within_ten_milliseconds_of_a_thousand_a_second() {
    in_both_worlds(&limited("1/h"), |place, world| {
        assert_eq!(passed(world, &frame(), 100), 20, "{place}");
        let reload = BEGIN + 60 * SECOND;
        world.set_time(reload);
        assert_eq!(passed(world, &frame(), 100), 0, "{place}");
        world.set_policy(&limited("1000/s"));
        // The state is brought up to date by the first packet that meets it.
        assert_eq!(
            passed(world, &frame(), 1),
            0,
            "{place}: it owes what it owed"
        );
        world.set_time(reload + 10 * MILLISECOND);
        assert_eq!(passed(world, &frame(), 100), 10, "{place}: ten in ten ms");
    });
}

#[test]
fn a_bucket_empty_at_a_thousand_a_second_stays_empty_at_one_an_hour() {
    in_both_worlds(&limited("1000/s"), |place, world| {
        assert_eq!(passed(world, &frame(), 100), 20, "{place}");
        world.set_policy(&limited("1/h"));
        assert_eq!(passed(world, &frame(), 100), 0, "{place}");
        world.set_time(BEGIN + 3_599 * SECOND);
        assert_eq!(passed(world, &frame(), 100), 0, "{place}");
        world.set_time(BEGIN + 3_600 * SECOND);
        assert_eq!(passed(world, &frame(), 100), 1, "{place}");
    });
}

#[test]
fn the_same_rules_again_change_nothing() {
    in_both_worlds(&limited("1/h"), |place, world| {
        assert_eq!(passed(world, &frame(), 7), 7, "{place}");
        for _ in 0..10 {
            world.set_policy(&limited("1/h"));
        }
        assert_eq!(passed(world, &frame(), 100), 13, "{place}");
        assert_eq!(world.limit("limit").passed, 20, "{place}");
    });
}

#[test]
fn an_override_holds_at_once_and_ends_by_itself() {
    let until = BEGIN + 10 * SECOND;
    let overridden = |source: Option<&str>, rate: &str, burst: &str| {
        let mut rules = limited("1/h");
        rules.changes.overrides = vec![Override {
            limit: "limit".to_owned(),
            source: source.map(|net| net.parse().expect("a prefix")),
            terms: terms(rate, burst),
            until,
        }];
        rules
    };
    for source in [None, Some("203.0.113.1/32"), Some("203.0.113.0/24")] {
        in_both_worlds(&limited("1/h"), |place, world| {
            let context = format!("{place}, {source:?}");
            assert_eq!(passed(world, &frame(), 100), 20, "{context}");
            world.set_policy(&overridden(source, "1000/s", "1000"));
            assert_eq!(passed(world, &frame(), 5_000), 980, "{context}: raised");
            world.set_time(until - 1);
            assert_eq!(passed(world, &frame(), 5_000), 1_000, "{context}");
            world.set_time(until);
            assert_eq!(
                passed(world, &frame(), 100),
                0,
                "{context}: over, and owing"
            );
            world.set_time(until + 3_600 * SECOND);
            assert_eq!(passed(world, &frame(), 100), 1, "{context}");
        });
        in_both_worlds(&overridden(source, "1/h", "1"), |place, world| {
            let context = format!("{place}, {source:?}");
            assert_eq!(passed(world, &frame(), 100), 1, "{context}: lowered");
            let other = udp([198, 51, 100, 7].into(), 53);
            let expected = if source.is_none() { 1 } else { 20 };
            assert_eq!(passed(world, &other, 100), expected, "{context}");
            world.set_time(until);
            assert_eq!(passed(world, &frame(), 100), 19, "{context}: over");
        });
    }
}

#[test]
fn another_limit_begins_anew_and_one_that_comes_back_goes_on() {
    let named = |name: &str| {
        let mut rules = policies::packets(policies::per_hour(1), 20);
        rules.spec.limits[0].name = name.to_owned();
        rules
    };
    in_both_worlds(&named("one"), |place, world| {
        assert_eq!(passed(world, &frame(), 100), 20, "{place}");
        world.set_policy(&named("other"));
        assert_eq!(passed(world, &frame(), 100), 20, "{place}");
        world.set_policy(&named("one"));
        assert_eq!(passed(world, &frame(), 100), 0, "{place}");
    });
}
