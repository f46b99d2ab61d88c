//! The common picture: a protected host, a network that attacks it, and one cable between them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::{Context as _, Result, anyhow};
use aya::util::online_cpus;

use crate::{
    ip::ip_batch,
    link::{Counters, counters},
    mac::Mac,
    netns::{Namespace, remove_leftovers},
    offload::{Offload, set_offload},
    veth::{Cable, End, add_addresses, lay},
};

/// The protected host's interface, where the limiter is attached.
pub const HOST_INTERFACE: &str = "lim0";
/// Its IPv4 address, in a /24.
pub const HOST_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Its IPv6 address, in a /64.
pub const HOST_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
/// Its hardware address.
pub const HOST_MAC: Mac = Mac([0x02, 0, 0, 0, 0, 0x01]);

/// The other end, where everything is sent from.
pub const NET_INTERFACE: &str = "net0";
/// Its IPv4 address, in a /24: the polite client's.
pub const NET_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// Its IPv6 address, in a /64.
pub const NET_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
/// Its hardware address.
pub const NET_MAC: Mac = Mac([0x02, 0, 0, 0, 0, 0x02]);

/// Both namespaces and the cable. Dropping it deletes everything.
///
/// ```text
///  namespace `net`                     namespace `host`
///  net0  192.0.2.2   2001:db8::2  ──── lim0  192.0.2.1   2001:db8::1
///  attackers, polite clients           limiter, echo server
/// ```
#[derive(Debug)]
pub struct Lab {
    /// Where everything is sent from.
    pub net: Namespace,
    /// The protected host.
    pub host: Namespace,
}

impl Lab {
    /// A lab with an MTU of 1500, a queue for each CPU's floods and one for all else; `purpose` becomes part of the namespaces' names (letters and digits).
    ///
    /// # Errors
    /// Not root, no `ip` command, or a kernel without network namespaces or veth.
    pub fn new(purpose: &str) -> Result<Self> {
        Self::with_cable(
            purpose,
            Cable {
                mtu: 1500,
                queues: cpus()? + 1,
                static_neighbours: false,
            },
        )
    }

    /// A lab with another cable.
    ///
    /// # Errors
    /// As for [`Lab::new`], or a cable that the kernel refuses.
    pub fn with_cable(purpose: &str, cable: Cable) -> Result<Self> {
        remove_leftovers()?;
        let lab = Self {
            net: Namespace::create(purpose, "net")?,
            host: Namespace::create(purpose, "host")?,
        };
        lay(
            cable,
            &End {
                namespace: &lab.host,
                interface: HOST_INTERFACE,
                mac: HOST_MAC,
                addresses: &[(HOST_V4.into(), 24), (HOST_V6.into(), 64)],
            },
            &End {
                namespace: &lab.net,
                interface: NET_INTERFACE,
                mac: NET_MAC,
                addresses: &[(NET_V4.into(), 24), (NET_V6.into(), 64)],
            },
        )?;
        // Without NAPI, frames of a flood would arrive only while a native XDP program is attached.
        set_offload(&lab.host, HOST_INTERFACE, Offload::Gro, true)?;
        Ok(lab)
    }

    /// Gives the attacking side more addresses, so that real sockets can send from them; prefix lengths of 32 and 128.
    ///
    /// Answers to those outside the cable's own prefixes need [`Lab::route_to_net`].
    ///
    /// # Errors
    /// What `ip` says: an address that is there already.
    pub fn add_net_addresses(&self, addresses: &[IpAddr]) -> Result<()> {
        let whole = |address: &IpAddr| (*address, if address.is_ipv4() { 32 } else { 128 });
        add_addresses(
            &self.net,
            NET_INTERFACE,
            &addresses.iter().map(whole).collect::<Vec<_>>(),
        )
    }

    /// Lets the host answer everybody: its default routes go over the cable.
    ///
    /// # Errors
    /// What `ip` says: a default route that is there already.
    pub fn route_to_net(&self) -> Result<()> {
        let routes = format!("route add default via {NET_V4}\nroute add ::/0 via {NET_V6}\n");
        ip_batch(Some(&self.host), &routes)
    }

    /// What the protected interface itself counted.
    ///
    /// # Errors
    /// `ip` fails.
    pub fn host_counters(&self) -> Result<Counters> {
        counters(&self.host, HOST_INTERFACE)
    }

    /// What the sending interface itself counted; its `send_dropped` are frames that no ring had room for.
    ///
    /// # Errors
    /// `ip` fails.
    pub fn net_counters(&self) -> Result<Counters> {
        counters(&self.net, NET_INTERFACE)
    }
}

fn cpus() -> Result<u32> {
    let cpus = online_cpus().map_err(|(file, error)| anyhow!("read {file}: {error}"))?;
    u32::try_from(cpus.len()).context("count the CPUs")
}
