//! What generic mode is known to get wrong.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream, UdpSocket},
    os::fd::AsFd as _,
    thread,
};

use anyhow::{Context as _, Result, anyhow};
use limiter_lab::{HOST_INTERFACE, HOST_V4, NET_INTERFACE, NET_V4, Namespace, Wire, frame::Frame};
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};
use socket2::{Domain, Protocol, Socket, Type};

use crate::common::{ATTACKER, DISCARD, Site, at_rest, explain, start};

/// A packet socket that hears what its host sends: every frame is then sent as a clone.
fn sniffer(namespace: &Namespace) -> Result<Socket> {
    let every = i32::from(u16::try_from(libc::ETH_P_ALL)?.to_be());
    let socket = namespace.run(|| {
        Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(every)))
            .context("open a packet socket")
    })?;
    setsockopt(&socket.as_fd(), RcvBufForce, &(64 << 20)).context("make room for frames")?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn heard(mut socket: &Socket) -> usize {
    let mut count = 0;
    while socket.read(&mut [0; 2048]).is_ok() {
        count += 1;
    }
    count
}

#[test]
fn case_22_a_sniffer_at_the_sender_does_not_turn_generic_mode_off() -> Result<()> {
    const PACKETS: usize = 1_000;
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1 --attach generic")?;
    let wire = Wire::open(&site.net, NET_INTERFACE)?;
    let frame = Frame::ipv4(ATTACKER, HOST_V4)
        .udp(1234, DISCARD)
        .payload(18)
        .build();
    let client = site.net.run(|| Ok(UdpSocket::bind((NET_V4, 0))?))?;
    // What empties both buckets, and makes the host known.
    wire.send(&frame)?;
    client.send_to(b"x", (HOST_V4, DISCARD))?;
    let before = at_rest(&limiter)?;
    let sniffer = sniffer(&site.net)?;
    for n in 1..=PACKETS {
        wire.send(&frame)?;
        client.send_to(b"x", (HOST_V4, DISCARD))?;
        if n % 50 == 0 {
            at_rest(&limiter)?;
        }
    }
    let after = at_rest(&limiter)?;
    assert!(heard(&sniffer) >= 2 * PACKETS, "the sniffer was at work");
    let dropped = |status: &limiter_userspace::report::Status| {
        status.interfaces[0].packets.dropped_by_reason["limit"]
    };
    assert_eq!(dropped(&after) - dropped(&before), 2 * PACKETS as u64);
    assert_eq!(after.limits[0].passed, before.limits[0].passed);
    Ok(())
}

/// Bytes that the host's interface has received, by its own count.
fn received_bytes(site: &Site) -> Result<u64> {
    let output = site
        .host
        .command("ip")
        .args(["-s", "-j", "link", "show", "dev", HOST_INTERFACE])
        .output()
        .context("run ip")?;
    let links: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    links[0]["stats64"]["rx"]["bytes"]
        .as_u64()
        .context("ip counts no bytes")
}

/// Sends so many bytes over TCP, from the network to the host.
fn transfer(site: &Site, bytes: usize) -> Result<()> {
    let listener = site.host.run(|| Ok(TcpListener::bind((HOST_V4, 0))?))?;
    let server = listener.local_addr()?;
    let receiver = thread::spawn(move || -> Result<usize> {
        let (mut connection, _) = listener.accept()?;
        let mut content = Vec::new();
        Ok(connection.read_to_end(&mut content)?)
    });
    let mut connection = site.net.run(|| Ok(TcpStream::connect(server)?))?;
    connection.write_all(&vec![0; bytes])?;
    connection.shutdown(Shutdown::Write)?;
    let arrived = receiver
        .join()
        .map_err(|_panic| anyhow!("the receiver panicked"))??;
    assert_eq!(arrived, bytes);
    Ok(())
}

#[test]
fn case_23_a_bundle_of_segments_is_charged_by_its_bytes() -> Result<()> {
    const BYTES: usize = 5_000_000;
    const BURST: u64 = 100_000_000;
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1B/h --burst 100MB --attach generic")?;
    let before = (received_bytes(&site)?, at_rest(&limiter)?);
    transfer(&site, BYTES)?;
    let status = at_rest(&limiter)?;
    let received = received_bytes(&site)? - before.0;
    let told = explain(&limiter, NET_V4)?;
    let segments = u64::try_from(BYTES / 1_448)?;
    assert!(
        told.passed < segments / 2,
        "{} frames: nothing was bundled",
        told.passed
    );
    let arp = 42
        * (status.interfaces[0].host_needs["arp"].passed
            - before.1.interfaces[0].host_needs["arp"].passed);
    assert_eq!(told.dropped, 0);
    assert_eq!(
        BURST - told.limits[0].tokens,
        received - arp,
        "each byte of each frame is charged"
    );
    Ok(())
}
