//! The clock that tests set is not there in a normal load.

use integration_tests::{
    kernel::{Kernel, map_id},
    packets::{ATTACKER, HOST},
    policies::{self, per_hour},
    world::{Action, BEGIN, World},
    xlated::maps_referred_to,
};
use limiter_common::source::SourceKey;
use limiter_lab::frame::Frame;
use limiter_userspace::kernel::monotonic_now;

#[test]
fn a_normal_load_does_not_refer_to_the_test_clock() {
    let rules = policies::packets(per_hour(1), 1);
    for (kernel, expected) in [
        (Kernel::running(&rules), false),
        (Kernel::frozen(&rules), true),
    ] {
        let program = kernel.program(0);
        let maps = maps_referred_to(program).expect("the program's instructions");
        assert!(
            maps.contains(&map_id(program, "SOURCES")),
            "maps can be told from instructions: {maps:?}"
        );
        assert_eq!(
            maps.contains(&map_id(program, "CLOCK")),
            expected,
            "the verifier removes the test clock from a normal load, and only from that"
        );
    }
}

#[test]
fn a_normal_load_takes_the_time_from_the_machine() {
    let rules = policies::packets(per_hour(1), 1);
    let kernel = Kernel::running(&rules);
    let frame = Frame::ipv4(ATTACKER, HOST).udp(1, 2).build();
    for time_in_the_map in [0, BEGIN, u64::MAX] {
        kernel.set_clock(time_in_the_map);
        let before = monotonic_now();
        kernel.flood(&frame, 1);
        let after = monotonic_now();
        let key = SourceKey::of(ATTACKER_ADDRESS, &rules.keys()).0;
        let state = kernel.source(&key).expect("the source is remembered");
        assert!(
            (before..=after).contains(&state.head.last_seen),
            "{} is not within {before} to {after}",
            state.head.last_seen
        );
    }
}

#[test]
fn setting_the_test_clock_refills_no_bucket_of_a_normal_load() {
    let kernel = Kernel::running(&policies::packets(per_hour(1), 1));
    let frame = Frame::ipv4(ATTACKER, HOST).udp(1, 2).build();
    assert_eq!(kernel.verdict(&frame), Action::Pass);
    for day in 1..10 {
        kernel.set_clock(BEGIN + day * 86_400_000_000_000);
        assert_eq!(kernel.verdict(&frame), Action::Drop, "day {day}");
    }
}

const ATTACKER_ADDRESS: limiter_common::address::Address =
    limiter_common::address::Address::from_v4(ATTACKER.to_bits());
