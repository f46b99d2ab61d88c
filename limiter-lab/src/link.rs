//! What an interface says about itself: a witness that neither the limiter nor the generator can bend.

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::{ip::ip, netns::Namespace};

/// An interface's own counters since it was made, in packets.
///
/// The two ends of a veth pair share them: what one end could not take in counts as `tx_dropped` of the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets received, those included that an XDP program dropped.
    pub received: u64,
    /// Packets lost before anybody saw them.
    pub receive_dropped: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets that could not be sent.
    pub send_dropped: u64,
}

/// Reads them.
///
/// # Errors
/// There is no such interface, or `ip` prints something else than expected.
pub fn counters(namespace: &Namespace, interface: &str) -> Result<Counters> {
    Ok(read(namespace, interface)?.counters)
}

/// An interface's state.
pub(crate) struct Link {
    /// Whether it has noticed that both ends are up.
    pub(crate) up: bool,
    pub(crate) counters: Counters,
}

/// Reads the state of an interface.
pub(crate) fn read(namespace: &Namespace, interface: &str) -> Result<Link> {
    let printed = ip(&[
        "-n",
        namespace.name(),
        "-s",
        "-j",
        "link",
        "show",
        "dev",
        interface,
    ])?;
    parse(&printed).with_context(|| format!("read the state of {interface}"))
}

fn parse(printed: &str) -> Result<Link> {
    let [
        Printed {
            operstate,
            stats64: Stats { rx, tx },
        },
    ] = serde_json::from_str(printed)
        .context("`ip -s -j link` printed something else than one link")?;
    let counters = Counters {
        received: rx.packets,
        receive_dropped: rx.dropped,
        sent: tx.packets,
        send_dropped: tx.dropped,
    };
    Ok(Link {
        up: operstate == "UP",
        counters,
    })
}

#[derive(Deserialize)]
struct Printed {
    operstate: String,
    stats64: Stats,
}

#[derive(Deserialize)]
struct Stats {
    rx: Direction,
    tx: Direction,
}

#[derive(Deserialize)]
struct Direction {
    packets: u64,
    dropped: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_found_among_the_rest() {
        let printed = r#"[{"ifname":"lim0","operstate":"UP",
            "stats64":{"rx":{"bytes":9,"packets":1,"dropped":2},"tx":{"packets":3,"dropped":4}}}]"#;
        let Link { up, counters } = parse(printed).expect("valid");
        assert!(up);
        assert_eq!(
            counters,
            Counters {
                received: 1,
                receive_dropped: 2,
                sent: 3,
                send_dropped: 4
            }
        );
        assert!(parse("[]").is_err());
    }
}
