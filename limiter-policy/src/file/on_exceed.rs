//! `on_exceed`: whom a limit bans.

use limiter_common::meter::Algorithm;

use super::{duration, fault::Fault, reader::Node};
use crate::spec::{BanSpec, Packets, Per};

const KEYS: [&str; 4] = ["ban", "after", "doubles", "spoofable"];

/// Reads `on_exceed` of a limit.
pub(super) fn read(
    node: &Node<'_>,
    per: Per,
    algorithm: Algorithm,
    packets: &Packets,
) -> Result<BanSpec, Fault> {
    let section = node.section(
        "a table such as { ban = \"10m\", after = 100, spoofable = true }",
        &KEYS,
    )?;
    if per != Per::Source {
        return Err(node.fault(format!(
            "a limit with per = {:?} cannot tell who exceeded it: a ban needs per = \"source\"",
            per.name()
        )));
    }
    if algorithm == Algorithm::SlidingLog {
        return Err(node.fault(
            "a sliding-log keeps no count of its refusals: use token-bucket, leaky-bucket or a window for a limit that bans",
        ));
    }
    let length =
        duration::read(&section.required("ban", "for how long, for example ban = \"10m\"")?)?;
    let what = "after how many refusals since the bucket was last full, for example after = 100";
    let after = section.required("after", what)?.integer(1, u32::MAX)?;
    let flag = |key| {
        section
            .get(key)
            .map_or(Ok(false), |node: Node<'_>| node.boolean())
    };
    let doubles = flag("doubles")?;
    if !flag("spoofable")? {
        return Err(node.fault(unproven(packets)));
    }
    Ok(BanSpec {
        length,
        after,
        doubles,
    })
}

/// Why no packets at all prove their source: with TCP, the handshake does, and limiter keeps no state of it, so that a
/// forged ACK looks like one of a connection.
fn unproven(packets: &Packets) -> String {
    let which = match packets {
        Packets::TcpEstablished => {
            "an ACK proves nothing either, since limiter does not follow handshakes"
        }
        _ => "these packets prove nothing",
    };
    format!(
        "{which}: whoever forges a source address could have it banned; add spoofable = true to accept that, and list in \
         `allow` whom you cannot do without"
    )
}
