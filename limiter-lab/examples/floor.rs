//! What a packet costs on this machine before any limiter judges it: `cargo run --release -p limiter-lab --example floor`, as root.
//!
//! Frames are made in the kernel, sent over the lab's cable, and counted by a program that does nothing else. Medians of interleaved rounds.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use anyhow::{Result, ensure};
use limiter_lab::{
    Counter, Flood, HOST_INTERFACE, HOST_V4, HOST_V6, Lab, Mode, NET_V6, Sources, Stop, Verdict,
    frame::Frame,
};

const ROUNDS: usize = 5;
const PACKETS: u64 = 1_000_000;

fn main() -> Result<()> {
    let attacker = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7));
    let sources = [
        ("1 IPv4", Sources::one(attacker)),
        ("any IPv4", Sources::any_ipv4()),
        ("1 IPv6", Sources::one(NET_V6.into())),
        ("1,000 IPv6 /48", Sources::in_ipv6_sites(NET_V6, 1_000)),
    ];
    let places = [
        (Mode::Native, Verdict::Drop),
        (Mode::Generic, Verdict::Drop),
        (Mode::Native, Verdict::Pass),
    ];
    let lab = Lab::new("floor")?;
    let mut costs = vec![Vec::new(); sources.len() * places.len()];
    for _ in 0..ROUNDS {
        let mut cells = costs.iter_mut();
        for (mode, verdict) in places {
            let counter = Counter::attach(&lab.host, HOST_INTERFACE, mode, verdict)?;
            for (_, sources) in sources {
                let before = counter.count()?;
                let sent = flood(sources)?.run(&lab, &Stop::new())?;
                let arrived = counter.count()? - before;
                ensure!(
                    arrived >= sent.packets,
                    "of {} frames only {arrived} arrived",
                    sent.packets
                );
                cells
                    .next()
                    .into_iter()
                    .for_each(|cell| cell.push(sent.nanoseconds_each()));
            }
        }
    }
    println!("ns per packet, making it included; median of {ROUNDS} rounds of {PACKETS} packets");
    let mut cells = costs.iter_mut();
    for (mode, verdict) in places {
        for ((name, _), cell) in sources.iter().zip(&mut cells) {
            cell.sort_unstable_by(f64::total_cmp);
            println!(
                "{:<8}{:<6}{name:<16}{:>6.0}",
                format!("{mode:?}"),
                format!("{verdict:?}"),
                cell[ROUNDS / 2]
            );
        }
    }
    Ok(())
}

fn flood(sources: Sources) -> Result<Flood> {
    let frame = match sources.address(0)? {
        IpAddr::V4(source) => Frame::ipv4(source, HOST_V4),
        IpAddr::V6(source) => Frame::ipv6(source, HOST_V6),
    };
    Ok(Flood {
        template: frame.udp(1234, 9).payload(18).template(),
        sources,
        packets: PACKETS,
        duration: Duration::from_secs(10),
        rate_per_second: None,
        cpu: Some(0),
    })
}
