//! Floods.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use limiter_lab::{
    Counter, Flood, HOST_INTERFACE, HOST_V4, HOST_V6, Mode, Sources, Stop, Tap, Verdict,
    frame::{Extension, Frame, tcp_flags},
};

use crate::common::{ATTACKER, ATTACKER6, DISCARD, alone, flood, lab};

#[test]
fn a_paced_flood_keeps_its_rate_and_arrives_to_the_last_frame() {
    let _alone = alone();
    let lab = lab();
    for mode in [Mode::Native, Mode::Generic] {
        let counter =
            Counter::attach(&lab.host, HOST_INTERFACE, mode, Verdict::Drop).expect("attached");
        for sources in [
            Sources::any_ipv4(),
            Sources::rotating(ATTACKER6.into(), 4_000),
        ] {
            let (seen, before) = (
                counter.count().expect("a count"),
                lab.host_counters().expect("counters"),
            );
            let sent = flood(sources, 600_000, Some(300_000))
                .run(&lab, &Stop::new())
                .expect("a flood");
            let after = lab.host_counters().expect("counters");
            println!("{mode:?}: {} frames at {:.0}/s", sent.packets, sent.rate());
            assert_eq!(sent.packets, 600_000);
            // Never faster; a little slower where the machine has other things to do.
            assert!(
                (270_000.0..300_100.0).contains(&sent.rate()),
                "{mode:?}: {}/s",
                sent.rate()
            );
            assert_eq!(
                counter.count().expect("a count") - seen,
                600_000,
                "{mode:?}"
            );
            assert_eq!(
                after.received - before.received,
                600_000,
                "the interface itself, {mode:?}"
            );
            assert_eq!(after.receive_dropped, before.receive_dropped, "{mode:?}");
        }
    }
}

#[test]
fn floods_from_two_cpus_lose_nothing() {
    let _alone = alone();
    let lab = lab();
    let counter =
        Counter::attach(&lab.host, HOST_INTERFACE, Mode::Native, Verdict::Drop).expect("attached");
    let refused = lab.net_counters().expect("counters").send_dropped;
    for rate in [Some(100_000), None] {
        let before = counter.count().expect("a count");
        let floods = [(0, ATTACKER.into()), (1, IpAddr::V6(ATTACKER6))].map(|(cpu, source)| {
            let flood = Flood {
                cpu: Some(cpu),
                ..flood(Sources::one(source), 100_001, rate)
            };
            flood.start(&lab, &Stop::new()).expect("a flood")
        });
        for flood in floods {
            let sent = flood.join().expect("a flood");
            println!("{rate:?}: {} frames at {:.0}/s", sent.packets, sent.rate());
            assert_eq!(sent.packets, 100_001);
        }
        assert_eq!(
            counter.count().expect("a count") - before,
            200_002,
            "{rate:?}"
        );
    }
    assert_eq!(lab.net_counters().expect("counters").send_dropped, refused);
}

/// The kernel's frames are, byte for byte and in order, those that user space would have built.
#[test]
fn what_arrives_is_what_was_planned() {
    let _alone = alone();
    let lab = lab();
    let four = |source: IpAddr| Frame::ip(source, HOST_V4.into()).options(3);
    let six = |source: IpAddr| Frame::ip(source, HOST_V6.into());
    let cases: [(Sources, &dyn Fn(IpAddr) -> Frame); 6] = [
        (Sources::rotating(ATTACKER.into(), 300), &|source| {
            four(source).udp(1, DISCARD).payload(31)
        }),
        (Sources::any_ipv4(), &|source| {
            four(source).tcp(1, 22, tcp_flags::SYN)
        }),
        (Sources::possible_ipv4(), &|source| {
            four(source).echo_request(1, 2).payload(10)
        }),
        (Sources::rotating(ATTACKER6.into(), 4_000), &|source| {
            six(source)
                .extension(Extension::destination())
                .udp(1, DISCARD)
        }),
        (Sources::in_ipv6_sites(ATTACKER6, 1_000), &|source| {
            six(source).tcp(1, 22, tcp_flags::ACK).payload(5)
        }),
        (
            Sources::rotating(ATTACKER6.into(), 70).prefixes(64),
            &|source| six(source).echo_request(3, 4),
        ),
    ];
    for (sources, frame) in cases {
        let address = |n| sources.address(n).expect("valid sources");
        // The tap hears frames without their outermost tag.
        let template = frame(address(0)).tagged(&[100]).template();
        let mut tap = Tap::open(&lab.host, HOST_INTERFACE).expect("a tap");
        let sent = Flood {
            template,
            ..flood(sources, 10_000, Some(50_000))
        }
        .run(&lab, &Stop::new())
        .expect("a flood");
        assert_eq!(sent.packets, 10_000);
        for n in 0..10_000 {
            let heard = tap
                .next(Duration::from_secs(1))
                .expect("a tap")
                .expect("a frame");
            assert_eq!(heard, frame(address(n)).build(), "frame {n} of {sources:?}");
        }
    }
}

#[test]
fn a_flood_is_bounded_in_time_and_stops_when_asked() {
    let _alone = alone();
    let lab = lab();
    for rate in [Some(300_000), Some(1), None] {
        let endless = flood(Sources::one(ATTACKER.into()), u64::MAX, rate);
        let start = Instant::now();
        let brief = Flood {
            duration: Duration::from_millis(200),
            ..endless.clone()
        };
        brief.run(&lab, &Stop::new()).expect("a flood");
        let took = start.elapsed();
        assert!(took < Duration::from_millis(500), "{rate:?}: {took:?}");

        let stop = Stop::new();
        let running = endless.start(&lab, &stop).expect("a flood");
        assert!(stop.sleep(Duration::from_millis(100)));
        stop.ask();
        let asked = Instant::now();
        running.join().expect("a flood");
        assert!(
            asked.elapsed() < Duration::from_millis(200),
            "{rate:?}: {:?}",
            asked.elapsed()
        );
    }
}
