//! What a bucket gives back, to the nanosecond, on a clock that the test sets: on the host and in the kernel.

use integration_tests::{
    check::in_both_worlds,
    counted::assert_adds_up,
    packets::{ATTACKER, HOST},
    policies::{self, monitored, per_hour, per_second},
    world::{BEGIN, passed},
};
use limiter_common::meter::Rate;
use limiter_lab::frame::Frame;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;

fn frame() -> Vec<u8> {
    Frame::ipv4(ATTACKER, HOST).udp(40_000, 53).build()
}

fn frame_of(length: usize) -> Vec<u8> {
    let headers = frame().len();
    let payload = length - headers;
    Frame::ipv4(ATTACKER, HOST)
        .udp(40_000, 53)
        .payload(payload)
        .build()
}

#[test]
fn a_new_source_has_its_whole_burst() {
    for burst in [1, 2, 100, 5_000] {
        in_both_worlds(&policies::packets(per_hour(1), burst), |place, world| {
            assert_eq!(passed(world, &frame(), burst + 10), burst, "{place}");
        });
    }
}

#[test]
fn a_token_comes_back_to_the_nanosecond() {
    let rates = [
        per_hour(1),
        per_hour(7),
        per_second(1),
        per_second(3),
        per_second(1_000),
        per_second(30_000),
        per_second(1_000_000),
    ];
    for rate in rates {
        let due = rate.period.div_ceil(rate.tokens);
        in_both_worlds(&policies::packets(rate, 5), |place, world| {
            let context = format!("{rate:?}, {place}");
            assert_eq!(passed(world, &frame(), 6), 5, "{context}");
            world.set_time(BEGIN + due - 1);
            assert_eq!(
                passed(world, &frame(), 1),
                0,
                "a nanosecond too early: {context}"
            );
            world.set_time(BEGIN + due);
            assert_eq!(passed(world, &frame(), 2), 1, "when it is due: {context}");
            let five_more = (6 * rate.period).div_ceil(rate.tokens);
            world.set_time(BEGIN + five_more - 1);
            assert_eq!(passed(world, &frame(), 6), 4, "{context}");
            world.set_time(BEGIN + five_more);
            assert_eq!(passed(world, &frame(), 6), 1, "{context}");
        });
    }
}

/// A rate that is offered steadily is admitted to within a token, however it relates to the limit.
#[test]
fn steady_offers_get_what_is_due() {
    const RATE: u64 = 1_000;
    const BURST: u64 = 100;
    const SECONDS: u64 = 10;
    let rules = policies::packets(per_second(RATE), BURST);
    for offer in [500, 999, 1_000, 1_001, 1_500, 2_001, 20_000] {
        in_both_worlds(&rules, |place, world| {
            let offered = offer * SECONDS;
            let at = |n| BEGIN + n * SECOND / offer;
            let mut admitted = 0;
            for n in 0..offered {
                world.set_time(at(n));
                admitted += passed(world, &frame(), 1);
            }
            let span = at(offered - 1) - BEGIN;
            let due = offered.min(BURST + RATE * span / SECOND);
            assert!(
                admitted.abs_diff(due) <= 1,
                "{offer}/s, {place}: {admitted} admitted, {due} due"
            );
        });
    }
}

/// Asking every second loses nothing of a token that takes hours.
#[test]
fn case_56_slower_than_one_a_second() {
    const BURST: u64 = 3;
    let rates = [
        per_hour(1),
        Rate {
            tokens: 1,
            period: 10 * SECOND,
        },
    ];
    for rate in rates {
        in_both_worlds(&policies::packets(rate, BURST), |place, world| {
            let mut admitted = 0;
            for second in 0..=7_200 {
                world.set_time(BEGIN + second * SECOND);
                admitted += passed(world, &frame(), 1);
            }
            let due = BURST + 7_200 * SECOND / rate.period;
            assert!(
                admitted.abs_diff(due) <= 1,
                "{rate:?}, {place}: {admitted} admitted, {due} due"
            );
        });
    }
}

#[test]
fn case_51_a_century_of_idleness_fills_the_bucket_once() {
    const CENTURY: u64 = 3_155_760_000 * SECOND;
    for rate in [per_hour(1), per_second(1_000), per_second(10_000_000)] {
        in_both_worlds(&policies::packets(rate, 20), |place, world| {
            for now in [0, CENTURY, 2 * CENTURY, u64::MAX] {
                world.set_time(now);
                assert_eq!(
                    passed(world, &frame(), 100),
                    20,
                    "{rate:?}, {place}, at {now}"
                );
            }
        });
    }
}

#[test]
fn case_63_a_clock_read_out_of_order_gives_nothing_and_takes_nothing() {
    in_both_worlds(&policies::packets(per_second(1_000), 20), |place, world| {
        assert_eq!(passed(world, &frame(), 30), 20, "{place}");
        for earlier in [1, 1_000_000, SECOND, BEGIN] {
            world.set_time(BEGIN - earlier);
            assert_eq!(
                passed(world, &frame(), 30),
                0,
                "{place}, {earlier} ns earlier"
            );
        }
        world.set_time(BEGIN + 1_000_000);
        assert_eq!(passed(world, &frame(), 30), 1, "{place}");
    });
}

#[test]
fn case_69_no_window_begins_anew() {
    in_both_worlds(&policies::packets(per_second(10), 10), |place, world| {
        world.set_time(BEGIN + 990_000_000);
        let before = passed(world, &frame(), 10);
        world.set_time(BEGIN + SECOND + 10_000_000);
        let behind = passed(world, &frame(), 10);
        assert_eq!((before, behind), (10, 0), "{place}: 20 ms give 0.2 tokens");
    });
}

#[test]
fn case_59_a_frame_of_the_whole_burst_passes_and_a_larger_one_never() {
    for length in [1_000, 9_000, 65_000] {
        let burst = length as u64;
        in_both_worlds(
            &policies::bytes(per_second(burst), burst),
            |place, world| {
                let context = format!("burst of {length} bytes, {place}");
                for hour in 1..3 {
                    world.set_time(BEGIN + hour * HOUR);
                    assert_eq!(passed(world, &frame_of(length + 1), 1), 0, "{context}");
                    assert_eq!(passed(world, &frame_of(length), 2), 1, "{context}");
                }
            },
        );
    }
}

/// Frames of several buffers, offered at ten times the limit.
#[test]
fn case_21_bytes_are_admitted_as_they_are_due() {
    const RATE: u64 = 1_000_000;
    const BURST: u64 = 130_000;
    let rules = policies::bytes(per_second(RATE), BURST);
    for length in [60, 1_514, 9_000, 65_000] {
        let bytes = length as u64;
        let interval = SECOND * bytes / (10 * RATE);
        let offers = 10 * SECOND / interval;
        // Short frames are many: a tenth of the time says as much.
        let offers = if bytes < 1_000 { offers / 10 } else { offers };
        in_both_worlds(&rules, |place, world| {
            let frame = frame_of(length);
            let mut admitted = 0;
            for n in 0..offers {
                world.set_time(BEGIN + n * interval);
                admitted += bytes * passed(world, &frame, 1);
            }
            let due = BURST + RATE * (offers - 1) * interval / SECOND;
            assert!(
                (due - bytes..=due + 1).contains(&admitted),
                "{length} bytes, {place}: {admitted} bytes admitted, {due} due"
            );
        });
    }
}

#[test]
fn monitor_mode_passes_all_and_counts_what_it_would_drop() {
    let rules = monitored(policies::packets(per_hour(1), 100));
    in_both_worlds(&rules, |place, world| {
        assert_eq!(passed(world, &frame(), 1_000), 1_000, "{place}");
        let counters = world.counters();
        assert_adds_up(&counters);
        assert_eq!(counters.limits[0].passed, 100, "{place}");
        assert_eq!(counters.limits[0].would_drop, 900, "{place}");
        assert_eq!(counters.limits[0].dropped, 0, "{place}");
        assert_eq!(counters.would_drop.iter().sum::<u64>(), 900, "{place}");
        assert_eq!(counters.dropped_total(), 0, "{place}");
    });
}

/// Several sources, each with a bucket of its own.
#[test]
fn sources_do_not_pay_for_each_other() {
    let rules = policies::packets(per_hour(1), 10);
    in_both_worlds(&rules, |place, world| {
        for host in 1..=50 {
            let frame = Frame::ipv4([203, 0, 113, host], HOST).udp(1, 2).build();
            assert_eq!(passed(world, &frame, 20), 10, "{place}: host {host}");
        }
        assert_eq!(world.sources().len(), 50, "{place}");
    });
}
