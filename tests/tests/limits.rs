//! Several limits: each has a state of its own, all are asked, and one that refuses takes from none.

use integration_tests::{
    check::in_both_worlds,
    counted::assert_adds_up,
    policies::Rules,
    senders::{key, sender, syn, udp},
    world::{BEGIN, passed},
};
use limiter_common::counters::Reason;

/// A game on UDP and a login, each with a limit of its own.
const SERVICES: &str = r#"
[services]
game.match = ["udp/27015"]
login.match = ["tcp/22"]

[[limits]]
name = "game"
service = "game"
per = "source"
rate = "1/h"
burst = 10

[[limits]]
name = "login"
service = "login"
packets = "tcp-syn"
per = "source"
rate = "1/h"
burst = 5
"#;

#[test]
fn an_exhausted_game_does_not_starve_the_login_of_the_same_address() {
    in_both_worlds(&Rules::from_file(SERVICES), |place, world| {
        let (game, login) = (udp(sender(1), 27_015), syn(sender(1), 22));
        assert_eq!(passed(world, &game, 100_000), 10, "{place}");
        assert_eq!(passed(world, &login, 100), 5, "{place}");
        assert_eq!(passed(world, &game, 100), 0, "{place}");
        assert_eq!(world.limit("login").dropped, 95, "{place}");
        assert_eq!(
            passed(world, &udp(sender(1), 53), 100),
            100,
            "{place}: no limit's"
        );
        assert_eq!(
            world.sources().len(),
            1,
            "{place}: one entry for both limits"
        );
    });
}

/// A limit per source below a ceiling for all.
const CEILING: &str = r#"
[[limits]]
name = "ceiling"
per = "everyone"
rate = "1/h"
burst = 1000

[[limits]]
name = "each"
per = "source"
rate = "1/h"
burst = 10
"#;

#[test]
fn a_flood_that_a_source_limit_rejects_takes_nothing_from_the_ceiling() {
    let rules = Rules::from_file(CEILING);
    let key = key(sender(1), &rules);
    in_both_worlds(&rules, |place, world| {
        assert_eq!(passed(world, &udp(sender(1), 53), 100_000), 10, "{place}");
        assert_eq!(world.tokens("ceiling", &key, BEGIN), 990, "{place}");
        assert_eq!(world.limit("ceiling").dropped, 0, "{place}");
        assert_eq!(world.limit("each").dropped, 99_990, "{place}");
        for other in 2..=100 {
            assert_eq!(passed(world, &udp(sender(other), 53), 10), 10, "{place}");
        }
        assert_eq!(
            passed(world, &udp(sender(101), 53), 10),
            0,
            "{place}: the ceiling"
        );
        assert_eq!(world.limit("ceiling").dropped, 10, "{place}");
        assert_adds_up(&world.counters());
    });
}

/// What the ceiling refuses costs the source nothing.
#[test]
fn a_packet_that_the_ceiling_rejects_takes_nothing_from_its_source() {
    let rules = Rules::from_file(&CEILING.replace("1000", "3"));
    let key = key(sender(1), &rules);
    in_both_worlds(&rules, |place, world| {
        assert_eq!(passed(world, &udp(sender(1), 53), 100), 3, "{place}");
        assert_eq!(world.tokens("each", &key, BEGIN), 7, "{place}");
    });
}

/// A monitored limit beside one that drops.
const MONITORED: &str = r#"
[[limits]]
name = "tried"
per = "source"
rate = "1/h"
burst = 5
cost = 3
mode = "monitor"
on_exceed = { ban = "10m", after = 1, spoofable = true }

[[limits]]
name = "each"
per = "source"
rate = "1/h"
burst = 10
"#;

#[test]
fn a_monitored_limit_never_bans_and_takes_nothing_where_it_would_reject() {
    let rules = Rules::from_file(MONITORED);
    let key = key(sender(1), &rules);
    in_both_worlds(&rules, |place, world| {
        assert_eq!(passed(world, &udp(sender(1), 53), 1_000), 10, "{place}");
        assert_eq!(
            world.tokens("tried", &key, BEGIN),
            2,
            "{place}: one packet was charged"
        );
        let tried = world.limit("tried");
        assert_eq!((tried.dropped, tried.would_drop), (0, 999), "{place}");
        assert_eq!(world.limit("each").dropped, 990, "{place}");
        assert!(world.bans().is_empty(), "{place}");
        assert_eq!(world.counters().dropped[Reason::Ban as usize], 0, "{place}");
    });
}

#[test]
fn the_switch_stops_bans_of_limits_too() {
    let rules = Rules::from_file(&MONITORED.replace("mode = \"monitor\"", ""));
    in_both_worlds(&rules, |place, world| {
        world.set_monitor(true);
        let frame = udp(sender(1), 53);
        assert_eq!(passed(world, &frame, 1_000), 1_000, "{place}");
        assert!(world.bans().is_empty(), "{place}");
        world.set_monitor(false);
        assert_eq!(passed(world, &frame, 10), 0, "{place}: at once");
        assert_eq!(world.bans().len(), 1, "{place}");
        world.set_monitor(true);
        assert_eq!(passed(world, &frame, 10), 10, "{place}: bans included");
        let would = world.counters().would_drop;
        assert_eq!(would[Reason::Ban as usize], 10, "{place}");
    });
}
