//! Who stays within the limit does not notice the flood beside.

use std::{net::IpAddr, time::Duration};

use anyhow::Result;
use limiter_lab::{
    Answers, ECHO_PORT, EchoServer, Flood, HOST_V4, HOST_V6, Manner, Polite, Sources, Stop, Task,
    frame::Frame,
};

use crate::common::{ATTACKER, ATTACKER_V6, DISCARD, Site, at_rest, explain, start};

const SPAN: Duration = Duration::from_secs(3);
/// Of both attackers together, 200,000.
const FLOOD_RATE: u64 = 100_000;

fn flood(attacker: IpAddr, victim: IpAddr) -> Flood {
    let frame = Frame::ip(attacker, victim).udp(1234, DISCARD).payload(18);
    Flood {
        template: frame.template(),
        sources: Sources::one(attacker),
        packets: 2_000_000,
        duration: SPAN,
        rate_per_second: Some(FLOOD_RATE),
        cpu: None,
    }
}

fn nothing_is_lost(mode: &str) -> Result<()> {
    let site = Site::new()?;
    let _server = EchoServer::start(&site)?;
    let limiter = site.limiter()?;
    let _daemon = start(
        &limiter,
        &format!("--rate 1000/s --burst 100 --attach {mode}"),
    )?;
    let stop = Stop::new();
    let pairs: [(IpAddr, IpAddr); 2] = [
        (ATTACKER.into(), HOST_V4.into()),
        (ATTACKER_V6.into(), HOST_V6.into()),
    ];
    let manners = [
        Manner::Udp { port: ECHO_PORT },
        Manner::Tcp { port: ECHO_PORT },
        Manner::Ping,
    ];
    let floods: Vec<_> = pairs
        .iter()
        .map(|(attacker, victim)| flood(*attacker, *victim).start(&site, &stop))
        .collect::<Result<_>>()?;
    let clients: Vec<(Manner, IpAddr, Task<Answers>)> = pairs
        .iter()
        .flat_map(|(_, victim)| manners.map(|manner| (manner, *victim)))
        .map(|(manner, victim)| {
            let client = Polite::new(victim, manner, SPAN).start(&site, &stop)?;
            Ok((manner, victim, client))
        })
        .collect::<Result<_>>()?;
    for (manner, victim, client) in clients {
        let answers = client.join()?;
        assert!(answers.sent >= 20, "{manner:?} {victim}: {answers:?}");
        assert_eq!(answers.lost(), 0, "{manner:?} to {victim}: {answers:?}");
    }
    for (flood, (attacker, _)) in floods.into_iter().zip(pairs) {
        let sent = flood.join()?;
        assert!(sent.rate() > 50_000.0, "that is no flood: {sent:?}");
        at_rest(&limiter)?;
        let told = explain(&limiter, attacker)?;
        assert_eq!(told.passed + told.dropped, sent.packets, "{attacker}");
    }
    Ok(())
}

#[test]
fn polite_clients_lose_nothing_beside_a_flood_natively() -> Result<()> {
    nothing_is_lost("native")
}

#[test]
fn polite_clients_lose_nothing_beside_a_flood_in_generic_mode() -> Result<()> {
    nothing_is_lost("generic")
}
