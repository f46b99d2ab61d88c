//! The file that the design aims at runs as it stands, and `explain` tells the truth about it.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    thread,
    time::Duration,
};

use anyhow::Result;
use limiter_lab::{
    Cable, End, Flood, Limiter, Mac, Namespace, Offload, Sources, Stop, frame::Frame,
    frame::tcp_flags, lay, set_offload,
};
use serde_json::{Value, json};

use super::{Place, Probe, done};
use crate::common::{ATTACKER, DISCARD, Site, at_rest, status, wait_until};

const DESIGN: &str = include_str!("design.toml");
const INTERFACE: &str = "eth0";
const FAR_INTERFACE: &str = "far0";
const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 129);
const FAR_MAC: Mac = Mac([0x02, 0, 0, 0, 2, 0x02]);
const HOST_MAC: Mac = Mac([0x02, 0, 0, 0, 2, 0x01]);
const PARTNER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 5);
const PARTNER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x77, 9, 0, 0, 0, 5);

const NEAR: &[(IpAddr, u8)] = &[(IpAddr::V4(HOST), 25)];
const FAR: &[(IpAddr, u8)] = &[(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 130)), 25)];

/// Gives the host an interface of that name.
fn lay_eth0(site: &Site) -> Result<()> {
    let cable = Cable {
        mtu: 1500,
        queues: 3,
        static_neighbours: false,
    };
    let end = |namespace, interface, mac, address: &'static [(IpAddr, u8)]| End {
        namespace,
        interface,
        mac,
        addresses: address,
    };
    lay(
        cable,
        &end(&site.host, INTERFACE, HOST_MAC, NEAR),
        &end(&site.net, FAR_INTERFACE, FAR_MAC, FAR),
    )?;
    set_offload(&site.host, INTERFACE, Offload::Gro, true)
}

fn probe(site: &Site) -> Result<Probe> {
    let far: (&Namespace, &str) = (&site.net, FAR_INTERFACE);
    Probe::between(far, (&site.host, INTERFACE))
}

fn from(source: IpAddr) -> Frame {
    let frame = match source {
        IpAddr::V4(source) => Frame::ipv4(source, HOST),
        IpAddr::V6(source) => Frame::ipv6(source, limiter_lab::HOST_V6),
    };
    frame.to(HOST_MAC)
}

fn syn(source: Ipv4Addr) -> Vec<u8> {
    from(source.into()).tcp(1234, 22, tcp_flags::SYN).build()
}

/// What would become of a connection attempt to the login service.
fn explain_syn(limiter: &Limiter<'_>, source: Ipv4Addr) -> Result<Value> {
    let source = source.to_string();
    limiter.json(&[
        "explain", &source, "--proto", "tcp", "--dport", "22", "--syn", "--json",
    ])
}

fn names(explained: &Value) -> Vec<&str> {
    let limits = explained["limits"].as_array().into_iter().flatten();
    limits.filter_map(|limit| limit["name"].as_str()).collect()
}

#[test]
fn a_login_flood_is_refused_then_banned_as_explain_says() -> Result<()> {
    let site = Site::new()?;
    lay_eth0(&site)?;
    let limiter = site.limiter()?;
    let place = Place::new(DESIGN)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let mut probe = probe(&site)?;
    let before = explain_syn(&limiter, ATTACKER)?;
    assert_eq!(
        names(&before),
        ["login-per-source", "per-source", "ceiling"]
    );
    assert_eq!(before["verdict"], "pass");
    assert_eq!(before["tracked"], false);
    assert_eq!(before["limits"][0]["tokens"], 20);

    // What is said of each packet comes true.
    for left in (1..=20_u64).rev() {
        let told = explain_syn(&limiter, ATTACKER)?;
        assert_eq!(
            (&told["verdict"], &told["limits"][0]["tokens"]),
            (&json!("pass"), &json!(left))
        );
        assert_eq!(probe.send(&syn(ATTACKER), 1)?, 1, "{told}");
    }
    let told = explain_syn(&limiter, ATTACKER)?;
    assert_eq!(
        (&told["verdict"], &told["reason"]),
        (&json!("drop"), &json!("limit"))
    );
    assert_eq!(told["limits"][0]["allowed"], false);
    let left = told["limits"][1]["tokens"].as_u64();
    assert!(
        left >= Some(1_980),
        "what the first refuses takes nothing of it: {told}"
    );
    let wait = told["limits"][0]["retry_after_ms"].as_u64();
    assert!(
        wait.is_some_and(|wait| (1..=6_000).contains(&wait)),
        "{told}"
    );
    assert_eq!(probe.send(&syn(ATTACKER), 1)?, 0);
    // Another service of the same source goes on.
    let datagram = from(ATTACKER.into()).udp(1234, DISCARD).build();
    assert_eq!(probe.send(&datagram, 1)?, 1);

    // The hundredth refusal bans; what is refused takes no time of a second, so no token has come back but a few.
    assert_eq!(explain_syn(&limiter, ATTACKER)?["listed"], "no");
    let mut attempts = 1;
    while explain_syn(&limiter, ATTACKER)?["listed"] == "no" {
        assert!(attempts < 110, "it is not banned");
        probe.send(&syn(ATTACKER), 1)?;
        attempts += 1;
    }
    let refused = at_rest(&limiter)?.limits[0].dropped;
    assert_eq!(refused, 100, "after {attempts} attempts");
    let told = explain_syn(&limiter, ATTACKER)?;
    assert_eq!(
        (&told["verdict"], &told["reason"]),
        (&json!("drop"), &json!("ban"))
    );
    let left = told["banned_for_s"].as_u64();
    assert!(
        left.is_some_and(|left| (590..=600).contains(&left)),
        "{told}"
    );
    // From then on everything of it is dropped.
    assert_eq!(probe.send(&datagram, 5)?, 0);
    let bans = limiter.json(&["bans", "--json"])?;
    assert_eq!(bans["bans"][0]["prefix"], ATTACKER.to_string());
    assert_eq!(bans["bans"][0]["by"], "limit");
    assert_eq!(bans["bans"][0]["limit"], "login-per-source");
    wait_until("the ban is counted", || {
        Ok(status(&limiter)?.bans.limit == 1)
    })?;
    // Who is lifted out starts again.
    done(&limiter, &["unban", &ATTACKER.to_string()])?;
    assert_eq!(probe.send(&datagram, 5)?, 5);
    Ok(())
}

#[test]
fn a_partner_has_more_of_the_limit_and_the_same_of_the_login() -> Result<()> {
    let site = Site::new()?;
    lay_eth0(&site)?;
    let limiter = site.limiter()?;
    let place = Place::new(DESIGN)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let mut probe = probe(&site)?;
    for partner in [IpAddr::from(PARTNER), PARTNER_V6.into()] {
        let told = limiter.explain(partner)?;
        assert_eq!(told["classes"], json!(["partner"]));
        assert_eq!(names(&told), ["per-source", "ceiling"]);
        let limit = &told["limits"][0];
        assert_eq!(
            (&limit["class"], &limit["tokens"]),
            (&json!("partner"), &json!(40_000))
        );
        let frame = from(partner).udp(1234, DISCARD).build();
        assert_eq!(probe.send(&frame, 5_000)?, 5_000);
        assert!(limiter.explain(partner)?["limits"][0]["tokens"].as_u64() <= Some(40_000));
    }
    let told = explain_syn(&limiter, PARTNER)?;
    assert_eq!(told["limits"][0]["class"], Value::Null);
    assert_eq!(told["limits"][0]["tokens"], 20);
    // Anybody else sends 2000 at once, and not 5000.
    let frame = from(ATTACKER.into()).udp(1234, DISCARD).build();
    let passed = probe.send(&frame, 5_000)?;
    assert!((2_000..5_000).contains(&passed), "{passed}");
    Ok(())
}

#[test]
fn the_monitored_ceiling_counts_and_drops_nothing() -> Result<()> {
    let site = Site::new()?;
    lay_eth0(&site)?;
    let limiter = site.limiter()?;
    // The ceiling as low as the test can go beyond it.
    let policy = DESIGN
        .replace("500000/s", "100/s")
        .replace("burst = 500000", "burst = 50");
    let place = Place::new(&policy)?;
    let (_daemon, _log) = place.start(&limiter)?;
    let flood = Flood {
        template: from(Ipv4Addr::UNSPECIFIED.into())
            .udp(1234, DISCARD)
            .payload(18)
            .template(),
        sources: Sources::rotating(Ipv4Addr::new(198, 51, 100, 0).into(), 200),
        packets: 10_000,
        duration: Duration::from_secs(5),
        rate_per_second: Some(20_000),
        cpu: None,
    };
    let sent = flood
        .start_at(&site.net, FAR_INTERFACE, &Stop::new())?
        .join()?;
    thread::sleep(Duration::from_millis(50));
    let status = at_rest(&limiter)?;
    let packets = &status.interfaces[0].packets;
    assert!(packets.seen >= sent.packets);
    assert_eq!(packets.dropped, 0, "{packets:?}");
    let ceiling = &status.limits[2];
    assert_eq!(
        (ceiling.name.as_str(), ceiling.mode.as_str()),
        ("ceiling", "monitor")
    );
    assert_eq!(ceiling.dropped, 0);
    let admitted = sent.packets - ceiling.would_drop.min(sent.packets);
    // CPUs lease tokens of it: what is leased is taken.
    assert!((50..=500).contains(&admitted), "{admitted} of {ceiling:?}");
    Ok(())
}
