//! Bans: when limits make them, how many there may be, and that they end without anybody's doing.

use integration_tests::{
    check::in_both_worlds,
    counted::assert_adds_up,
    kernel::{Kernel, Shape},
    model::Model,
    policies::Rules,
    senders::{key, sender, udp},
    world::{Action, BEGIN, World, passed},
};
use limiter_common::counters::{Reason, Table};
use limiter_policy::changes::OperatorBan;

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;

fn banning(on_exceed: &str) -> Rules {
    Rules::from_file(&format!(
        "[[limits]]\nname = \"limit\"\nper = \"source\"\nrate = \"1/s\"\nburst = 2\non_exceed = {{ {on_exceed}, \
         spoofable = true }}\n"
    ))
}

fn frame() -> Vec<u8> {
    udp(sender(1), 53)
}

fn banned(world: &dyn World) -> u64 {
    world.counters().dropped[Reason::Ban as usize]
}

#[test]
fn refusals_since_the_bucket_was_last_full_make_a_ban() {
    in_both_worlds(&banning("ban = \"10m\", after = 3"), |place, world| {
        assert_eq!(passed(world, &frame(), 4), 2, "{place}: two refusals");
        world.set_time(BEGIN + SECOND);
        assert_eq!(
            passed(world, &frame(), 2),
            1,
            "{place}: never full, so the third"
        );
        assert_eq!(world.bans().len(), 1, "{place}");
        assert_eq!(banned(world), 0, "{place}");
        let over = BEGIN + SECOND + 10 * MINUTE;
        world.set_time(over - 1);
        assert_eq!(passed(world, &frame(), 5), 0, "{place}");
        assert_eq!(banned(world), 5, "{place}");
        world.set_time(over);
        assert_eq!(passed(world, &frame(), 2), 2, "{place}: over, by itself");
        assert_eq!(banned(world), 5, "{place}");
    });
}

/// A flood that goes on when its ban is over is banned again as soon as it is one too many once more.
#[test]
fn a_flood_that_outlasts_its_ban_is_banned_again() {
    let rules = banning("ban = \"10s\", after = 100");
    in_both_worlds(&rules, |place, world| {
        let mut through = 0;
        for second in 0..100 {
            world.set_time(BEGIN + second * SECOND);
            through += passed(world, &frame(), 1_000);
        }
        let counters = world.counters();
        let refused = counters.dropped[Reason::Limit as usize];
        assert_eq!(
            (through, refused),
            (2 + 9 * 2, 10 * 100),
            "{place}: once every 10 s"
        );
        assert_eq!(banned(world), 100_000 - through - refused, "{place}");
    });
}

#[test]
fn a_full_bucket_forgives_refusals() {
    in_both_worlds(&banning("ban = \"10m\", after = 3"), |place, world| {
        for visit in 0..20 {
            world.set_time(BEGIN + visit * 2 * SECOND);
            assert_eq!(passed(world, &frame(), 4), 2, "{place}");
        }
        assert!(world.bans().is_empty(), "{place}");
        assert_eq!(passed(world, &frame(), 1), 0, "{place}: the third at once");
        assert_eq!(world.bans().len(), 1, "{place}");
    });
}

#[test]
fn a_ban_on_repeat_is_twice_as_long_if_asked() {
    for (doubles, lengths) in [(true, [1, 2, 4, 8]), (false, [1, 1, 1, 1])] {
        let rules = banning(&format!("ban = \"1m\", after = 1, doubles = {doubles}"));
        let key = key(sender(1), &rules);
        in_both_worlds(&rules, |place, world| {
            let mut now = BEGIN;
            for minutes in lengths {
                world.set_time(now);
                assert_eq!(passed(world, &frame(), 10), 2, "{place}: then it is banned");
                let until = world.bans()[&key].until;
                assert_eq!(until - now, minutes * MINUTE, "{place}: doubles {doubles}");
                now = until;
            }
        });
    }
}

const ROOM: u32 = 8;

/// Who finds no room is refused by the limit as before, and is tried again at every eighth refusal only.
fn crowd(place: &str, world: &mut dyn World) {
    const CROWD: u8 = 20;
    let failed = |world: &dyn World| world.counters().table[Table::BanFailed as usize];
    for number in 0..CROWD {
        assert_eq!(passed(world, &udp(sender(number), 53), 3), 2, "{place}");
    }
    let others = u64::from(CROWD) - u64::from(ROOM);
    assert_eq!(world.bans().len(), ROOM as usize, "{place}");
    assert_eq!(failed(world), others, "{place}");
    for number in 0..CROWD {
        assert_eq!(passed(world, &udp(sender(number), 53), 640), 0, "{place}");
    }
    assert_eq!(failed(world), 81 * others, "{place}: eighty more each");
    assert_eq!(banned(world), 640 * u64::from(ROOM), "{place}");
    assert_eq!(world.bans().len(), ROOM as usize, "{place}");
    assert_adds_up(&world.counters());
}

#[test]
fn bans_of_limits_are_bounded_in_number() {
    let rules = banning("ban = \"10m\", after = 1");
    let mut model = Model::new(&rules);
    model.set_ban_capacity(ROOM as usize);
    crowd("host", &mut model);
    let mut shape = Shape::default();
    shape.room.bans = ROOM;
    crowd("kernel", &mut Kernel::load(shape, &rules));
}

/// An operator's ban, and one of his for a time in the middle of it.
#[test]
fn a_ban_for_a_time_ends_without_a_daemon() {
    let mut rules = banning("ban = \"10m\", after = 1000");
    let ban = |prefix: &str, until| OperatorBan {
        prefix: prefix.parse().expect("a prefix"),
        until,
    };
    let until = BEGIN + 10 * SECOND;
    rules.changes.bans = vec![
        ban("203.0.113.1/32", Some(until)),
        ban("203.0.113.64/26", Some(until + SECOND)),
        ban("203.0.113.66/32", Some(until)),
        ban("203.0.113.3/32", None),
    ];
    in_both_worlds(&rules, |place, world| {
        let check = |world: &mut dyn World, now: u64, passing: &[u8]| {
            world.set_time(now);
            for number in [1, 2, 3, 65, 66] {
                let expected = if passing.contains(&number) {
                    Action::Pass
                } else {
                    Action::Drop
                };
                let found = world.judge(&udp(sender(number), 53));
                assert_eq!(found, expected, "{place}: {number} at {}", now - BEGIN);
            }
        };
        check(world, BEGIN, &[2]);
        check(world, until - 1, &[2]);
        check(world, until, &[1, 2]);
        check(world, until + SECOND, &[1, 2, 65, 66]);
        check(world, until + 100 * SECOND, &[1, 2, 65, 66]);
    });
}
