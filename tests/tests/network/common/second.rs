//! A second cable between the same two hosts.

use std::net::Ipv4Addr;

use anyhow::Result;
use limiter_lab::{Cable, End, Mac, Offload, lay, set_offload};

use super::Site;

/// The host's second interface.
pub(crate) const SECOND_HOST_INTERFACE: &str = "lim1";
/// The other end of it.
pub(crate) const SECOND_NET_INTERFACE: &str = "net1";

/// Lays it.
pub(crate) fn lay_second(site: &Site) -> Result<()> {
    let cable = Cable {
        mtu: 1500,
        queues: 3,
        static_neighbours: false,
    };
    lay(
        cable,
        &End {
            namespace: &site.host,
            interface: SECOND_HOST_INTERFACE,
            mac: Mac([0x02, 0, 0, 0, 1, 0x01]),
            addresses: &[(Ipv4Addr::new(192, 0, 2, 129).into(), 25)],
        },
        &End {
            namespace: &site.net,
            interface: SECOND_NET_INTERFACE,
            mac: Mac([0x02, 0, 0, 0, 1, 0x02]),
            addresses: &[(Ipv4Addr::new(192, 0, 2, 130).into(), 25)],
        },
    )?;
    set_offload(&site.host, SECOND_HOST_INTERFACE, Offload::Gro, true)
}
