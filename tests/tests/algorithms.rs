//! Each algorithm's promise and its failure, in the figures that the documentation gives: on the host and in the kernel.

use integration_tests::{
    check::{in_both_worlds, with_kernel},
    counted::assert_adds_up,
    hammer::on_every_cpu,
    policies::Rules,
    senders::{key, sender, udp},
    world::{Action, BEGIN, World, passed},
};

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;

fn rules(algorithm: &str, rate: &str) -> Rules {
    Rules::from_file(&format!(
        "[[limits]]\nname = \"limit\"\nper = \"source\"\nalgorithm = \"{algorithm}\"\n{rate}\n"
    ))
}

fn frame() -> Vec<u8> {
    udp(sender(1), 53)
}

#[test]
fn a_fixed_window_admits_twice_its_limit_across_a_seam() {
    in_both_worlds(
        &rules("fixed-window", "rate = \"100/s\""),
        |place, world| {
            world.set_time(BEGIN + SECOND - 1);
            assert_eq!(
                passed(world, &frame(), 150),
                100,
                "{place}: the end of a window"
            );
            world.set_time(BEGIN + SECOND);
            assert_eq!(
                passed(world, &frame(), 150),
                100,
                "{place}: a nanosecond later, the next"
            );
            world.set_time(BEGIN + 2 * SECOND - 1);
            assert_eq!(
                passed(world, &frame(), 150),
                0,
                "{place}: and no more in that"
            );
        },
    );
}

/// 20 in this window and 90 in the one before, of which a quarter has gone: 20 + 90 x 0.75 = 87.5.
#[test]
fn a_sliding_window_weighs_the_one_before() {
    let rules = rules("sliding-window", "rate = \"100/min\"");
    let key = key(sender(1), &rules);
    in_both_worlds(&rules, |place, world| {
        assert_eq!(passed(world, &frame(), 90), 90, "{place}");
        let quarter = BEGIN + MINUTE + MINUTE / 4;
        world.set_time(quarter);
        assert_eq!(passed(world, &frame(), 20), 20, "{place}");
        assert_eq!(
            world.tokens("limit", &key, quarter),
            12,
            "{place}: 100 - 87.5, in whole packets"
        );
        assert_eq!(passed(world, &frame(), 50), 12, "{place}");
    });
}

/// What came at the very end of a window counts as if it had come all through it.
#[test]
fn a_sliding_window_admits_too_much_after_a_late_burst() {
    in_both_worlds(
        &rules("sliding-window", "rate = \"100/min\""),
        |place, world| {
            world.set_time(BEGIN + MINUTE - 1);
            assert_eq!(passed(world, &frame(), 90), 90, "{place}");
            world.set_time(BEGIN + MINUTE + MINUTE / 4);
            assert_eq!(
                passed(world, &frame(), 150),
                32,
                "{place}: 122 within 15 s, where 100 a minute were meant"
            );
        },
    );
}

#[test]
fn a_stale_window_never_counts_as_the_one_before() {
    in_both_worlds(
        &rules("sliding-window", "rate = \"100/min\""),
        |place, world| {
            for windows in [0, 2, 4, 7, 100, 1_000_000] {
                world.set_time(BEGIN + windows * MINUTE);
                assert_eq!(passed(world, &frame(), 150), 100, "{place}: {windows}");
            }
        },
    );
}

#[test]
fn a_sliding_log_admits_its_limit_in_any_window_and_no_less() {
    const LIMIT: usize = 32;
    in_both_worlds(
        &rules("sliding-log", "rate = \"32/min\""),
        |place, world| {
            let mut random = fastrand::Rng::with_seed(1);
            let mut admitted: Vec<u64> = Vec::new();
            let mut now = BEGIN;
            for _ in 0..5_000 {
                now += random.u64(..2 * SECOND);
                world.set_time(now);
                let young = admitted
                    .iter()
                    .filter(|moment| now - **moment < MINUTE)
                    .count();
                let passes = world.judge(&frame()) == Action::Pass;
                assert_eq!(passes, young < LIMIT, "{place}: {young} in the last minute");
                if passes {
                    admitted.push(now);
                }
            }
            assert!(admitted.len() > 2_000, "{place}: {}", admitted.len());
        },
    );
}

#[test]
fn a_sliding_log_is_exact_on_all_cpus_at_once() {
    with_kernel(|kernel| {
        kernel.reset(&rules("sliding-log", "rate = \"32/min\""));
        let mut admitted = 0;
        for minute in 0..20 {
            kernel.set_time(BEGIN + minute * MINUTE);
            on_every_cpu(|_| kernel.flood(&frame(), 20_000));
            let counters = kernel.counters();
            assert_adds_up(&counters);
            admitted += 32;
            assert_eq!(counters.passed, admitted, "minute {minute}");
        }
    });
}

#[test]
fn a_leaky_bucket_admits_its_queue_and_then_one_at_a_time() {
    let rules = rules("leaky-bucket", "rate = \"10/s\"\nqueue = 5");
    in_both_worlds(&rules, |place, world| {
        assert_eq!(passed(world, &frame(), 20), 6, "{place}: queue and drain");
        for n in 1..50 {
            world.set_time(BEGIN + n * SECOND / 10 - 1);
            assert_eq!(
                passed(world, &frame(), 3),
                0,
                "{place}: {n}, a nanosecond early"
            );
            world.set_time(BEGIN + n * SECOND / 10);
            assert_eq!(passed(world, &frame(), 3), 1, "{place}: {n}");
        }
    });
}
