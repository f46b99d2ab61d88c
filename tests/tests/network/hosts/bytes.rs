//! A limit that counts bytes, on real datagrams.

use std::{net::UdpSocket, time::Duration};

use anyhow::Result;
use limiter_lab::{Cable, HOST_V4, NET_V4};

use crate::common::{Site, at_rest, explain, start};

const PORT: u16 = 5000;
/// The smallest burst of a limit that counts bytes.
const BURST: u64 = 65_536;
/// What stands before a datagram's content: Ethernet, IPv4, UDP.
const HEADERS: u64 = 14 + 20 + 8;

/// Sends datagrams of so many bytes to the host, and returns how many its socket receives.
fn received(site: &Site, payload: usize, count: usize) -> Result<u64> {
    let server = site.host.run(|| Ok(UdpSocket::bind((HOST_V4, PORT))?))?;
    server.set_read_timeout(Some(Duration::from_millis(300)))?;
    let client = site.net.run(|| Ok(UdpSocket::bind((NET_V4, 0))?))?;
    let content = vec![0; payload];
    let mut received = 0;
    let mut buffer = [0; 10_000];
    for _ in 0..count {
        client.send_to(&content, (HOST_V4, PORT))?;
        // One after the other, so that no buffer overflows.
        if let Ok(length) = server.recv(&mut buffer) {
            assert_eq!(length, payload);
            received += 1;
        } else {
            break;
        }
    }
    for _ in 0..10 {
        client.send_to(&content, (HOST_V4, PORT))?;
    }
    assert!(server.recv(&mut buffer).is_err(), "none of ten more passes");
    Ok(received)
}

fn bytes_are_charged(site: &Site, payload: usize, mode: &str) -> Result<()> {
    let limiter = site.limiter()?;
    let _daemon = start(
        &limiter,
        &format!("--rate 1B/h --burst {BURST}B --attach {mode}"),
    )?;
    let frame = u64::try_from(payload)? + HEADERS;
    let received = received(site, payload, 1_000)?;
    assert_eq!(received, BURST / frame, "frames of {frame} bytes, {mode}");
    let status = at_rest(&limiter)?;
    assert_eq!(status.limits[0].passed, received);
    assert_eq!(status.limits[0].dropped, 11);
    assert_eq!(explain(&limiter, NET_V4)?.limits[0].tokens, BURST % frame);
    Ok(())
}

#[test]
fn bytes_are_those_of_the_frame() -> Result<()> {
    let site = Site::new()?;
    bytes_are_charged(&site, 1_000, "native")?;
    bytes_are_charged(&site, 1_400, "generic")
}

#[test]
fn case_21_jumbo_frames_are_charged_whole() -> Result<()> {
    let cable = Cable {
        mtu: 9_000,
        queues: 3,
        static_neighbours: false,
    };
    let site = Site::with_cable(cable)?;
    bytes_are_charged(&site, 8_900, "native")?;
    bytes_are_charged(&site, 8_900, "generic")
}
