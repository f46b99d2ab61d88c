//! Monitor mode drops nothing, and shows what would be dropped.

use std::time::Duration;

use anyhow::Result;
use limiter_lab::{
    ECHO_PORT, EchoServer, HOST_INTERFACE, HOST_V4, Manner, NET_INTERFACE, NET_V4, Paced, Polite,
    Stop, Tap, Wire, frame::Frame,
};

use crate::common::{ATTACKER, DISCARD, Site, allowance, at_rest, explain, start, top, wait_until};

#[test]
fn monitor_mode_passes_everything_and_counts_what_it_would_drop() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1000/s --burst 100 --monitor")?;
    let mut tap = Tap::open(&site.host, HOST_INTERFACE)?;
    let frame = Frame::ipv4(ATTACKER, HOST_V4).udp(1234, DISCARD).build();
    let stream = Paced::for_duration(frame.clone(), 5_000, Duration::from_secs(1))?;
    let sent = stream.run(&site, &Stop::new())?.sent;
    let malformed = frame[..30].to_vec();
    let tagged = Frame::ipv4(ATTACKER, HOST_V4).tagged(&[1, 2, 3]).build();
    Wire::open(&site.net, NET_INTERFACE)?.send_all(&[malformed, tagged])?;
    let status = at_rest(&limiter)?;
    let packets = &status.interfaces[0].packets;
    assert_eq!(packets.seen, sent.packets + 2);
    assert_eq!((packets.passed, packets.dropped), (packets.seen, 0));
    assert!(packets.dropped_by_reason.values().all(|count| *count == 0));
    let would_drop = packets.would_drop_by_reason["limit"];
    let admitted = sent.packets - would_drop;
    let most = allowance(100, 1_000, sent.elapsed);
    assert!((100..=most).contains(&admitted), "{admitted} of {most}");
    assert_eq!(packets.would_drop_by_reason["malformed"], 1);
    assert_eq!(packets.would_drop_by_reason["too_many_tags"], 1);
    let limit = &status.limits[0];
    assert_eq!(limit.mode, "monitor");
    assert_eq!((limit.dropped, limit.would_drop), (0, would_drop));
    let mut arrived = 0;
    while tap.next(Duration::from_millis(50))?.is_some() {
        arrived += 1;
    }
    assert_eq!(
        arrived, packets.seen,
        "everything reached the network stack"
    );
    let told = explain(&limiter, ATTACKER)?;
    assert_eq!((told.verdict.as_str(), told.dropped), ("pass", would_drop));
    Ok(())
}

#[test]
fn case_45_monitor_mode_shows_answers_to_the_host_that_would_be_dropped() -> Result<()> {
    let site = Site::new()?;
    let mirror = [NET_V4.into()];
    let _mirror = EchoServer::start_at(&site.net, &mirror, ECHO_PORT)?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 100/s --burst 10 --monitor")?;
    let download = Polite {
        per_second: 1_000,
        ..Polite::new(
            NET_V4.into(),
            Manner::Udp { port: ECHO_PORT },
            Duration::from_secs(1),
        )
    };
    let answers = download.start_at(&site.host, &Stop::new())?.join()?;
    assert_eq!(answers.lost(), 0, "{answers:?}");
    let would_drop = at_rest(&limiter)?.limits[0].would_drop;
    assert!(
        would_drop > answers.sent / 2,
        "{would_drop} of {}",
        answers.sent
    );
    wait_until("the mirror leads the ranking", || {
        let most_dropped = top(&limiter)?.most_dropped;
        Ok(most_dropped
            .first()
            .is_some_and(|first| first.source == NET_V4.to_string() && first.dropped == would_drop))
    })
}

#[test]
fn case_45_the_help_warns_of_limiting_the_hosts_own_downloads() -> Result<()> {
    let site = Site::new()?;
    let help = site.limiter()?.output(&["help", "run"])?.stdout;
    let help = String::from_utf8(help)?;
    let words: Vec<&str> = help.split_whitespace().collect();
    assert!(
        words
            .join(" ")
            .contains("Answers to what this host itself asked for count too"),
        "{help}"
    );
    Ok(())
}
