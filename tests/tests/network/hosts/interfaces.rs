//! Several interfaces, one bucket per source.

use std::time::{Duration, Instant};

use anyhow::Result;
use limiter_lab::{
    Flood, HOST_INTERFACE, HOST_V4, NET_INTERFACE, Sources, Stop, Task, frame::Frame,
};

use crate::common::{
    ATTACKER, DISCARD, SECOND_HOST_INTERFACE, SECOND_NET_INTERFACE, Site, allowance, at_rest,
    explain, lay_second, start_logged,
};

const SPAN: Duration = Duration::from_secs(2);

#[test]
fn a_source_has_one_bucket_for_all_interfaces() -> Result<()> {
    let site = Site::new()?;
    lay_second(&site)?;
    let limiter = site.limiter()?;
    let both = format!("{HOST_INTERFACE},{SECOND_HOST_INTERFACE}");
    let arguments = ["--iface", &both, "--rate", "1000/s", "--burst", "100"];
    let (_daemon, _log) = start_logged(&limiter, &arguments)?;
    let stop = Stop::new();
    let flood = Flood {
        template: Frame::ipv4(ATTACKER, HOST_V4)
            .udp(1234, DISCARD)
            .payload(18)
            .template(),
        sources: Sources::one(ATTACKER.into()),
        packets: 100_000,
        duration: SPAN,
        rate_per_second: Some(10_000),
        cpu: None,
    };
    let start = Instant::now();
    let floods = [NET_INTERFACE, SECOND_NET_INTERFACE]
        .map(|interface| flood.start_at(&site.net, interface, &stop));
    let [first, second] = floods.map(|flood| flood.and_then(Task::join));
    let (first, second) = (first?, second?);
    let status = at_rest(&limiter)?;
    let names: Vec<&str> = status
        .interfaces
        .iter()
        .map(|interface| interface.name.as_str())
        .collect();
    assert_eq!(names, [HOST_INTERFACE, SECOND_HOST_INTERFACE]);
    for (interface, sent) in status.interfaces.iter().zip([first, second]) {
        let packets = &interface.packets;
        assert_eq!(packets.seen, sent.packets, "{}", interface.name);
        assert_eq!(packets.seen, packets.passed + packets.dropped);
        assert!(packets.passed > 0 && packets.dropped > 0, "{packets:?}");
    }
    let told = explain(&limiter, ATTACKER)?;
    assert_eq!(told.passed, status.limits[0].passed);
    assert_eq!(told.passed + told.dropped, first.packets + second.packets);
    assert_eq!(status.sources.events["inserted"], 1);
    // The bucket was asked all the time from the first frame of either flood to the last, unless the machine held both up.
    let least = allowance(100, 1_000, first.elapsed.max(second.elapsed)) * 9 / 10;
    let most = allowance(100, 1_000, start.elapsed());
    assert!(
        (least..=most).contains(&told.passed),
        "{} instead of {least} to {most}",
        told.passed
    );
    Ok(())
}

#[test]
fn interfaces_are_told_apart_by_their_programs() -> Result<()> {
    let site = Site::new()?;
    lay_second(&site)?;
    let limiter = site.limiter()?;
    let arguments = [
        "--iface",
        HOST_INTERFACE,
        "--iface",
        SECOND_HOST_INTERFACE,
        "--rate",
        "1/h",
        "--burst",
        "1",
        "--attach",
        "generic",
    ];
    let (_daemon, _log) = start_logged(&limiter, &arguments)?;
    let status = at_rest(&limiter)?;
    let [first, second] = &status.interfaces[..] else {
        panic!("two interfaces: {status:?}")
    };
    assert_ne!(first.program_id, second.program_id);
    assert_ne!(first.ifindex, second.ifindex);
    assert!(first.attached && second.attached);
    Ok(())
}
