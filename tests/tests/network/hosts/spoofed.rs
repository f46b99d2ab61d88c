//! A flood whose every frame bears another address, and more of them than the table holds.

use std::{net::Ipv4Addr, time::Duration};

use anyhow::Result;
use limiter_lab::{
    ECHO_PORT, EchoServer, Flood, HOST_V4, Manner, Polite, Sources, Stop, frame::Frame,
};

use crate::common::{DISCARD, Site, at_rest, on_host, start_logged, status, wait_until};

const CAPACITY: u64 = 8_192;
const SOURCES: u64 = 200_000;

#[test]
fn cases_43_138_invented_sources_fill_neither_table_nor_log_and_hurt_nobody() -> Result<()> {
    let site = Site::new()?;
    let _server = EchoServer::start(&site)?;
    let limiter = site.limiter()?;
    let words = format!("--rate 1000/s --burst 100 --max-sources {CAPACITY}");
    let (_daemon, log) = start_logged(&limiter, &on_host(&words))?;
    let stop = Stop::new();
    let manner = Manner::Udp { port: ECHO_PORT };
    let client = Polite::new(HOST_V4.into(), manner, Duration::from_secs(3)).start(&site, &stop)?;
    let flood = Flood {
        template: Frame::ipv4(Ipv4Addr::UNSPECIFIED, HOST_V4)
            .udp(1234, DISCARD)
            .payload(18)
            .template(),
        sources: Sources::possible_ipv4(),
        packets: SOURCES,
        duration: Duration::from_secs(10),
        rate_per_second: Some(100_000),
        cpu: None,
    };
    let sent = flood.run(&site, &stop)?;
    let answers = client.join()?;
    assert_eq!(answers.lost(), 0, "{answers:?}");
    let now = at_rest(&limiter)?;
    let packets = &now.interfaces[0].packets;
    assert!(packets.seen >= sent.packets);
    assert_eq!(packets.seen, packets.passed + packets.dropped);
    wait_until("the table is full", || {
        Ok(status(&limiter)?.sources.tracked > CAPACITY / 2)
    })?;
    let sources = status(&limiter)?.sources;
    assert!(sources.tracked <= CAPACITY, "{sources:?}");
    assert!(sources.events["inserted"] > CAPACITY, "{sources:?}");
    let lines = log.text().lines().count();
    assert!(lines <= 10, "{lines} lines:\n{}", log.text());
    Ok(())
}
