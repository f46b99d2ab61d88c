//! Polite clients and exact streams.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use limiter_lab::{
    Answers, Counter, ECHO_PORT, EchoServer, HOST_INTERFACE, HOST_V4, HOST_V6, Lab, Manner, Mode,
    Paced, Polite, Sources, Stop, Task, Verdict, frame::Frame,
};

use crate::common::{ATTACKER, DISCARD, alone, flood, lab};

/// A client of every kind in both IP versions, at work.
fn everybody(lab: &Lab, duration: Duration, stop: &Stop) -> Vec<(Polite, Task<Answers>)> {
    let mut clients = Vec::new();
    for server in [IpAddr::V4(HOST_V4), IpAddr::V6(HOST_V6)] {
        for manner in [
            Manner::Ping,
            Manner::Udp { port: ECHO_PORT },
            Manner::Tcp { port: ECHO_PORT },
        ] {
            let client = Polite {
                per_second: 50,
                ..Polite::new(server, manner, duration)
            };
            clients.push((client, client.start(lab, stop).expect("a client")));
        }
    }
    clients
}

#[test]
fn polite_clients_lose_nothing_beside_a_flood() {
    let _alone = alone();
    let stop = Stop::new();
    let lab = lab();
    let server = EchoServer::start(&lab).expect("a server");
    for mode in [Mode::Native, Mode::Generic] {
        let counter =
            Counter::attach(&lab.host, HOST_INTERFACE, mode, Verdict::Pass).expect("attached");
        let clients = everybody(&lab, Duration::from_secs(2), &stop);
        let attack = flood(
            Sources::rotating(ATTACKER.into(), 1_000),
            600_000,
            Some(300_000),
        );
        let sent = attack.run(&lab, &stop).expect("a flood");
        println!(
            "{mode:?}: beside {} frames at {:.0}/s",
            sent.packets,
            sent.rate()
        );
        for (Polite { server, manner, .. }, client) in clients {
            let answers = client.join().expect("a client");
            println!("{mode:?}: {manner:?} to {server}: {answers:?}");
            assert_eq!(answers.lost(), 0, "{mode:?}: {manner:?} to {server}");
            let asked = if matches!(manner, Manner::Tcp { .. }) {
                80..=100
            } else {
                100..=100
            };
            assert!(
                asked.contains(&answers.sent),
                "{mode:?}: {manner:?} to {server}: {answers:?}"
            );
        }
        assert_eq!(sent.packets, 600_000);
        assert!(counter.count().expect("a count") > 600_000);
    }
    assert!(server.answered() >= 2 * (2 * 100 + 2 * 80));
}

#[test]
fn a_client_without_a_server_counts_its_losses() {
    let _alone = alone();
    let lab = lab();
    for manner in [Manner::Udp { port: DISCARD }, Manner::Tcp { port: DISCARD }] {
        let client = Polite {
            patience: Duration::from_millis(200),
            ..Polite::new(HOST_V4.into(), manner, Duration::from_millis(500))
        };
        let answers = client
            .start(&lab, &Stop::new())
            .expect("a client")
            .join()
            .expect("a client");
        assert_eq!((answers.sent, answers.lost()), (5, 5), "{manner:?}");
        assert_eq!(answers.median, None);
    }
}

#[test]
fn clients_and_servers_stop_when_asked() {
    let _alone = alone();
    let stop = Stop::new();
    let lab = lab();
    let server = EchoServer::start(&lab).expect("a server");
    let clients = everybody(&lab, Duration::from_secs(60), &stop);
    let stream = Paced {
        frames: vec![datagram()],
        rate_per_second: 1,
        packets: 60,
    }
    .start(&lab, &stop)
    .expect("a stream");
    assert!(stop.sleep(Duration::from_millis(200)));
    stop.ask();
    let asked = Instant::now();
    for (client, task) in clients {
        let answers = task.join().expect("a client");
        assert!(
            answers.sent > 0 && answers.lost() == 0,
            "{client:?}: {answers:?}"
        );
    }
    assert!(stream.join().expect("a stream").sent.packets <= 1);
    drop(server);
    assert!(
        asked.elapsed() < Duration::from_millis(500),
        "{:?}",
        asked.elapsed()
    );
}

fn datagram() -> Vec<u8> {
    Frame::ipv4(ATTACKER, HOST_V4)
        .udp(1234, DISCARD)
        .payload(18)
        .build()
}

#[test]
fn a_paced_stream_is_exact() {
    let _alone = alone();
    let lab = lab();
    for mode in [Mode::Native, Mode::Generic] {
        let counter =
            Counter::attach(&lab.host, HOST_INTERFACE, mode, Verdict::Drop).expect("attached");
        for (rate, total) in [(1_001, 2_002), (20_000, 40_000)] {
            let before = counter.count().expect("a count");
            let stream =
                Paced::for_duration(datagram(), rate, Duration::from_secs(2)).expect("a stream");
            let kept = stream.run(&lab, &Stop::new()).expect("a stream");
            println!("{mode:?}: {rate}/s: {kept:?}");
            assert_eq!(kept.sent.packets, total);
            assert_eq!(counter.count().expect("a count") - before, total);
            let span = Duration::from_secs(2)
                .mul_f64(1.0 - 1.0 / f64::from(u32::try_from(total).expect("small")));
            assert!(
                kept.sent.elapsed >= span && kept.sent.elapsed < span + Duration::from_millis(100),
                "{kept:?}"
            );
        }
    }
}
