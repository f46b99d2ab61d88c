//! A cable: a veth pair between two namespaces.

use std::{
    net::IpAddr,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, bail};
use aya::util::nr_cpus;

use crate::{
    ip::{ip, ip_batch},
    link::read,
    mac::Mac,
    netns::Namespace,
};

/// One end of the cable.
#[derive(Debug)]
pub struct End<'a> {
    /// Where it lies.
    pub namespace: &'a Namespace,
    /// Its name there, at most 15 bytes.
    pub interface: &'a str,
    /// Its hardware address.
    pub mac: Mac,
    /// Its addresses with their prefix lengths.
    pub addresses: &'a [(IpAddr, u8)],
}

/// The cable's own properties.
#[derive(Clone, Copy, Debug)]
pub struct Cable {
    /// The MTU of both ends, bytes.
    pub mtu: u32,
    /// Receive and transmit queues of each end. If there are several, the last one is for what sockets send, and a flood uses the one with the
    /// number of its CPU, round and round. A queue that two CPUs fill at once can overflow, so one more than there are CPUs loses nothing.
    pub queues: u32,
    /// Whether each end knows the other's hardware address from the start, so that no ARP and no neighbour discovery is needed.
    pub static_neighbours: bool,
}

/// Lays the cable and takes both ends up. It goes when either namespace goes.
///
/// The ends are quiet: addresses need no duplicate address detection, no router is solicited, and multicast memberships are reported before
/// this returns, so that a count of frames is a count of the frames that were sent on purpose.
///
/// # Errors
/// What `ip` says, a namespace's setting that cannot be set, or a cable that does not get ready within seconds.
pub fn lay(cable: Cable, near: &End<'_>, far: &End<'_>) -> Result<()> {
    let Cable {
        mtu,
        queues,
        static_neighbours,
    } = cable;
    let side = |end: &End<'_>| {
        let End {
            namespace,
            interface,
            mac,
            addresses: _,
        } = end;
        let name = namespace.name();
        format!(
            "{interface} address {mac} mtu {mtu} numtxqueues {queues} numrxqueues {queues} netns {name}"
        )
    };
    ip_batch(
        None,
        &format!("link add {} type veth peer {}\n", side(near), side(far)),
    )?;
    for end in [near, far] {
        let set = |key, value| {
            end.namespace
                .sysctl(&format!("net/ipv6/conf/{}/{key}", end.interface), value)
        };
        set("addr_gen_mode", "1")?;
        set("router_solicitations", "0")?;
        set("mldv2_unsolicited_report_interval", "1")?;
        add_addresses(end.namespace, end.interface, end.addresses)?;
        add_addresses(
            end.namespace,
            end.interface,
            &[(end.mac.link_local().into(), 64)],
        )?;
        if let Some(last) = queues.checked_sub(1).filter(|last| *last > 0) {
            send_from(end, last)?;
        }
        ip(&[
            "-n",
            end.namespace.name(),
            "link",
            "set",
            end.interface,
            "up",
        ])?;
    }
    if static_neighbours {
        add_neighbours(near, far)?;
        add_neighbours(far, near)?;
    }
    settle(near, far)
}

/// Makes sockets on all CPUs send from one queue.
fn send_from(end: &End<'_>, queue: u32) -> Result<()> {
    let cpus = nr_cpus().map_err(|(file, error)| anyhow!("read {file}: {error}"))?;
    // The kernel reads a mask in words of 32 bits, the last one first.
    let words: Vec<String> = (0..cpus.div_ceil(32))
        .map(|word| format!("{:x}", u32::MAX >> (32 - (cpus - word * 32).min(32))))
        .rev()
        .collect();
    let file = format!(
        "/sys/class/net/{}/queues/tx-{queue}/xps_cpus",
        end.interface
    );
    // Run by `ip`, because it shows the namespace's own interfaces under /sys.
    let shell = [
        "sh",
        "-c",
        "echo \"$1\" > \"$2\"",
        "sh",
        &words.join(","),
        &file,
    ];
    ip(&[&["netns", "exec", end.namespace.name()], &shell[..]].concat()).map(drop)
}

/// Waits until both ends have noticed that they are connected, and have said what they say then.
///
/// The kernel may take a second for the first. The second is three reports of multicast memberships, some milliseconds apart.
fn settle(near: &End<'_>, far: &End<'_>) -> Result<()> {
    const QUIET: Duration = Duration::from_millis(100);
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut last = None;
    let mut since = Instant::now();
    while Instant::now() < deadline {
        let near = read(near.namespace, near.interface)?;
        let far = read(far.namespace, far.interface)?;
        let now = (near.up && far.up).then_some((near.counters, far.counters));
        if now.is_none() || now != last {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() > QUIET {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(10));
    }
    bail!(
        "the cable from {} to {} is not ready after 5 seconds",
        near.interface,
        far.interface
    )
}

/// Adds addresses to an interface, however many, without duplicate address detection.
///
/// # Errors
/// What `ip` says: no such interface, or an address that is there already.
pub fn add_addresses(
    namespace: &Namespace,
    interface: &str,
    addresses: &[(IpAddr, u8)],
) -> Result<()> {
    let line = |(address, length): &(IpAddr, u8)| {
        let nodad = if address.is_ipv6() { " nodad" } else { "" };
        format!("address add {address}/{length} dev {interface}{nodad}\n")
    };
    ip_batch(
        Some(namespace),
        &addresses.iter().map(line).collect::<String>(),
    )
}

/// Tells one end the other's hardware address.
fn add_neighbours(end: &End<'_>, other: &End<'_>) -> Result<()> {
    let line = |(address, _): &(IpAddr, u8)| {
        format!(
            "neighbour add {address} lladdr {} dev {}\n",
            other.mac, end.interface
        )
    };
    ip_batch(
        Some(end.namespace),
        &other.addresses.iter().map(line).collect::<String>(),
    )
}
