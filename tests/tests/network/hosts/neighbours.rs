//! Neighbours find each other whatever they have sent: ARP and IPv6 neighbour discovery with an empty bucket.

use std::{net::IpAddr, time::Duration};

use anyhow::{Context as _, Result, ensure};
use limiter_lab::{
    HOST_INTERFACE, HOST_MAC, HOST_V4, HOST_V6, Manner, NET_INTERFACE, NET_MAC, NET_V4, NET_V6,
    Namespace, Paced, Polite, Stop, frame::Frame,
};

use crate::common::{DISCARD, Site, at_rest, explain, start, status, wait_until};

/// Makes a host forget its neighbours.
fn forget(namespace: &Namespace, interface: &str) -> Result<()> {
    let status = namespace
        .command("ip")
        .args(["neighbour", "flush", "dev", interface])
        .status()
        .context("run ip")?;
    ensure!(status.success(), "ip neighbour flush: {status}");
    Ok(())
}

/// Whether a host knows its neighbour.
fn knows(namespace: &Namespace, interface: &str, neighbour: IpAddr, mac: &str) -> Result<bool> {
    let output = namespace
        .command("ip")
        .args([
            "neighbour",
            "show",
            &neighbour.to_string(),
            "dev",
            interface,
        ])
        .output()
        .context("run ip")?;
    Ok(String::from_utf8(output.stdout)?.contains(mac))
}

/// Lets one host ask for the other, whatever becomes of its ping.
fn ask(namespace: &Namespace, whom: IpAddr) -> Result<()> {
    let ping = Polite {
        patience: Duration::from_millis(50),
        ..Polite::new(whom, Manner::Ping, Duration::from_millis(10))
    };
    ping.start_at(namespace, &Stop::new())?.join().map(drop)
}

fn they_find_each_other(net: IpAddr, host: IpAddr, need: &str, mode: &str) -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, &format!("--rate 5/s --burst 5 --attach {mode}"))?;
    let stop = Stop::new();
    let flood = Paced {
        frames: vec![Frame::ip(net, host).udp(1234, DISCARD).build()],
        rate_per_second: 1_000,
        packets: 30_000,
    };
    let flood = flood.start(&site, &stop)?;
    wait_until("the bucket is empty", || {
        Ok(explain(&limiter, net)?.dropped > 100)
    })?;
    let granted =
        || Ok::<_, anyhow::Error>(status(&limiter)?.interfaces[0].host_needs[need].passed);
    // The network's question comes in.
    let before = granted()?;
    forget(&site.net, NET_INTERFACE)?;
    ask(&site.net, host)?;
    wait_until("the network knows the host", || {
        knows(&site.net, NET_INTERFACE, host, &HOST_MAC.to_string())
    })?;
    assert!(granted()? > before, "its question was granted as {need}");
    // The answer to the host's question comes in.
    let before = granted()?;
    forget(&site.host, HOST_INTERFACE)?;
    ask(&site.host, net)?;
    wait_until("the host knows the network", || {
        knows(&site.host, HOST_INTERFACE, net, &NET_MAC.to_string())
    })?;
    assert!(granted()? > before, "its answer was granted as {need}");
    assert!(
        flood.progress().sent() < 30_000,
        "the bucket was empty all the time"
    );
    // Once the source keeps to its limit, it is served again.
    stop.ask();
    flood.join()?;
    wait_until("the bucket has tokens again", || {
        Ok(explain(&limiter, net)?.limits[0].tokens >= 2)
    })?;
    forget(&site.net, NET_INTERFACE)?;
    let ping = Polite::new(host, Manner::Ping, Duration::from_millis(10));
    let answers = ping.start(&site, &Stop::new())?.join()?;
    assert_eq!((answers.sent, answers.lost()), (1, 0));
    let status = at_rest(&limiter)?;
    assert_eq!(status.interfaces[0].host_needs[need].exceeded, 0);
    Ok(())
}

#[test]
fn case_24_arp_works_with_an_empty_bucket() -> Result<()> {
    they_find_each_other(NET_V4.into(), HOST_V4.into(), "arp", "native")
}

#[test]
fn case_25_neighbour_discovery_works_with_an_empty_bucket() -> Result<()> {
    they_find_each_other(
        NET_V6.into(),
        HOST_V6.into(),
        "neighbour_discovery",
        "native",
    )
}

#[test]
fn case_25_neighbour_discovery_works_with_an_empty_bucket_in_generic_mode() -> Result<()> {
    they_find_each_other(
        NET_V6.into(),
        HOST_V6.into(),
        "neighbour_discovery",
        "generic",
    )
}
