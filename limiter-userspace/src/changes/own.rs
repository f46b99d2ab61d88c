//! Addresses that this host lives from: its own, and those of its default gateways.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use nix::ifaddrs::getifaddrs;

/// An address that is not banned by mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// The address.
    pub address: IpAddr,
    /// Whose.
    pub kind: Kind,
    /// Of or behind this interface.
    pub interface: String,
}

/// Whose an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// This host's.
    Own,
    /// A default gateway's.
    Gateway,
}

/// The addresses of all interfaces, and the default gateways of the main routing table, in the network namespace of
/// this process, as they are now.
///
/// # Errors
///
/// Where the kernel does not tell its addresses. A host without routes has no gateways.
pub fn guarded() -> io::Result<Vec<Guarded>> {
    let mut all: Vec<Guarded> = getifaddrs()?
        .filter_map(|interface| {
            let address = interface.address?;
            let address = address
                .as_sockaddr_in()
                .map(|v4| IpAddr::V4(v4.ip()))
                .or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))?;
            Some(Guarded {
                address,
                kind: Kind::Own,
                interface: interface.interface_name,
            })
        })
        .collect();
    let routes = |path| fs::read_to_string(path).unwrap_or_default();
    all.extend(gateways_v4(&routes("/proc/net/route")));
    all.extend(gateways_v6(&routes("/proc/net/ipv6_route")));
    Ok(all)
}

fn gateway(address: IpAddr, interface: &str) -> Option<Guarded> {
    (!address.is_unspecified()).then(|| Guarded {
        address,
        kind: Kind::Gateway,
        interface: interface.to_owned(),
    })
}

/// From `/proc/net/route`: interface, destination, gateway, five more columns, mask. Addresses are in hexadecimal, as
/// read by this machine from network order.
fn gateways_v4(routes: &str) -> impl Iterator<Item = Guarded> {
    routes.lines().skip(1).filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        match columns[..] {
            [interface, "00000000", address, _, _, _, _, "00000000", ..] => {
                let bits = u32::from_str_radix(address, 16).ok()?;
                gateway(Ipv4Addr::from(bits.to_ne_bytes()).into(), interface)
            }
            _ => None,
        }
    })
}

/// From `/proc/net/ipv6_route`: destination, its length, source, its length, gateway, ..., interface. Addresses and
/// lengths are in hexadecimal.
fn gateways_v6(routes: &str) -> impl Iterator<Item = Guarded> {
    routes.lines().filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        match columns[..] {
            [_, "00", _, _, address, .., interface] => {
                let bits = u128::from_str_radix(address, 16).ok()?;
                gateway(Ipv6Addr::from_bits(bits).into(), interface)
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_loopback_address() {
        let all = guarded().unwrap();
        let loopback = all
            .iter()
            .find(|one| one.address == IpAddr::V4(Ipv4Addr::LOCALHOST));
        assert_eq!(loopback.unwrap().kind, Kind::Own);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn gateways_of_ipv4() {
        let routes = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0
";
        let found: Vec<Guarded> = gateways_v4(routes).collect();
        let expected = Guarded {
            address: "192.0.2.1".parse().unwrap(),
            kind: Kind::Gateway,
            interface: "eth0".to_owned(),
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn gateways_of_ipv6() {
        let routes = "\
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0
20010db8000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
";
        let found: Vec<IpAddr> = gateways_v6(routes).map(|one| one.address).collect();
        assert_eq!(found, ["fe80::1".parse::<IpAddr>().unwrap()]);
    }
}
