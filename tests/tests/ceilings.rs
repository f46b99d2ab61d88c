//! The ceilings of the host's own needs: generous, and no hole.

use std::net::Ipv6Addr;

use integration_tests::{
    check::in_both_worlds,
    counted::assert_adds_up,
    hammer::{on_every_cpu, width},
    kernel::{Kernel, Shape},
    packets::{HOST6, needs::one_of_each},
    policies::{self, NEED_BURST, NEED_RATE, Rules, monitored, per_hour, per_second, with_needs},
    world::{Action, BEGIN, World, ordinary_source, passed},
};
use limiter_common::{counters::Reason, needs::Need};
use limiter_lab::frame::Frame;

fn rules() -> Rules {
    policies::packets(per_hour(1), 1)
}

#[test]
fn each_kind_has_a_burst_of_its_own_and_comes_back_at_its_rate() {
    in_both_worlds(&rules(), |place, world| {
        for (need, frame) in one_of_each() {
            let name = need.name();
            world.set_time(BEGIN);
            assert_eq!(
                passed(world, &frame, NEED_BURST + 500),
                NEED_BURST,
                "{place}: {name}"
            );
            world.set_time(BEGIN + 10_000_000);
            let due = NEED_RATE / 100;
            assert_eq!(
                passed(world, &frame, 500),
                due,
                "{place}: {name} 10 ms later"
            );
        }
        let counters = world.counters();
        assert_adds_up(&counters);
        let due = NEED_BURST + NEED_RATE / 100;
        assert_eq!(counters.needs_passed, [due; Need::COUNT], "{place}");
        assert_eq!(
            counters.needs_exceeded,
            [1_000 - NEED_RATE / 100; Need::COUNT],
            "{place}"
        );
        assert_eq!(
            counters.dropped[Reason::NeedCeiling as usize],
            counters.needs_exceeded.iter().sum::<u64>(),
            "{place}"
        );
        assert!(world.sources().is_empty(), "{place}: nobody is charged");
    });
}

#[test]
fn another_policy_may_have_another_ceiling() {
    in_both_worlds(&with_needs(rules(), per_second(1), 10), |place, world| {
        for (need, frame) in one_of_each() {
            assert_eq!(passed(world, &frame, 100), 10, "{place}: {}", need.name());
        }
        world.set_policy(&with_needs(rules(), per_second(1), 20));
        for (need, frame) in one_of_each() {
            let name = need.name();
            assert_eq!(
                passed(world, &frame, 100),
                20,
                "{place}: {name} begins anew"
            );
        }
    });
}

#[test]
fn case_24_25_28_32_needs_pass_whatever_their_sender_has_spent() {
    in_both_worlds(&rules(), |place, world| {
        for (need, frame) in one_of_each() {
            if let Some(source) = ordinary_source(&frame) {
                world.drain(source);
            }
            assert_eq!(
                world.judge(&frame),
                Action::Pass,
                "{place}: {}",
                need.name()
            );
        }
    });
}

#[test]
fn case_26_router_advertisements_from_rotating_sources_stay_under_the_ceiling() {
    in_both_worlds(&rules(), |place, world| {
        let mut admitted = 0;
        for n in 0..10_000 {
            let [.., a, b] = u16::to_be_bytes(n);
            let source = Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, a, b]);
            admitted += passed(world, &Frame::router_advertisement(source).build(), 1);
        }
        assert_eq!(admitted, NEED_BURST, "{place}");
        assert!(world.sources().is_empty(), "{place}: no slot was taken");
        let solicitation = Frame::neighbour_solicitation(Ipv6Addr::UNSPECIFIED, HOST6).build();
        assert_eq!(
            world.judge(&solicitation),
            Action::Drop,
            "{place}: the same kind"
        );
        let mtu = one_of_each()[Need::PathMtu as usize].1.clone();
        assert_eq!(world.judge(&mtu), Action::Pass, "{place}: another kind");
    });
}

#[test]
fn monitor_mode_passes_what_is_beyond_the_ceiling_and_counts_it() {
    in_both_worlds(&monitored(rules()), |place, world| {
        let (need, frame) = one_of_each()[0].clone();
        assert_eq!(
            passed(world, &frame, NEED_BURST + 7),
            NEED_BURST + 7,
            "{place}"
        );
        let counters = world.counters();
        assert_adds_up(&counters);
        assert_eq!(counters.needs_exceeded[need as usize], 7, "{place}");
        assert_eq!(
            counters.would_drop[Reason::NeedCeiling as usize],
            7,
            "{place}"
        );
    });
}

#[test]
fn each_interface_has_ceilings_of_its_own() {
    let kernel = Kernel::load(two_interfaces(), &rules());
    for interface in 0..2 {
        for (need, frame) in one_of_each() {
            kernel.flood_on(interface, &frame, 2_500);
            let counters = kernel.counters_of(interface);
            let passed = counters.needs_passed[need as usize];
            assert_eq!(
                passed,
                NEED_BURST,
                "{} on interface {interface}",
                need.name()
            );
        }
        assert_adds_up(&kernel.counters_of(interface));
    }
}

#[test]
fn all_cpus_share_a_ceiling() {
    let mut kernel = Kernel::frozen(&rules());
    for (need, frame) in one_of_each() {
        kernel.reset(&rules());
        on_every_cpu(|_| kernel.flood(&frame, 20_000));
        let counters = kernel.counters();
        assert_adds_up(&counters);
        assert_eq!(counters.seen, 20_000 * width() as u64);
        // A packet for which all tries were in vain leaves its token to another: there are enough of them.
        assert_eq!(
            counters.needs_passed[need as usize],
            NEED_BURST,
            "{}",
            need.name()
        );
    }
}

fn two_interfaces() -> Shape {
    Shape {
        interfaces: 2,
        ..Shape::default()
    }
}
