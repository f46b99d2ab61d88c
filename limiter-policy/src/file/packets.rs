//! `packets` and `source_ports`: which packets a limit is for.

use super::{
    fault::Fault,
    ports,
    reader::{Node, Section},
};
use crate::{
    describe::words,
    spec::{Packets, Protocol, ServiceSpec},
};

/// The kinds, before it is known which ports `answers` come from.
#[derive(Clone, Copy)]
enum Kind {
    Any,
    TcpSyn,
    TcpEstablished,
    Udp,
    Answers,
    Icmp,
    Fragments,
    Portless,
}

const KINDS: [(&str, Kind); 8] = [
    ("any", Kind::Any),
    ("tcp-syn", Kind::TcpSyn),
    ("tcp-established", Kind::TcpEstablished),
    ("udp", Kind::Udp),
    ("answers", Kind::Answers),
    ("icmp", Kind::Icmp),
    ("fragments", Kind::Fragments),
    ("portless", Kind::Portless),
];

pub(super) fn read(section: &Section<'_>) -> Result<Packets, Fault> {
    let kind = section
        .get("packets")
        .map_or(Ok(Kind::Any), |node| node.word(&KINDS))?;
    let packets = match kind {
        Kind::Any => Packets::Any,
        Kind::TcpSyn => Packets::TcpSyn,
        Kind::TcpEstablished => Packets::TcpEstablished,
        Kind::Udp => Packets::Udp,
        Kind::Answers => {
            let what = "where answers come from, for example source_ports = [53, 123]";
            return Ok(Packets::Answers(source_ports(
                &section.required("source_ports", what)?,
            )?));
        }
        Kind::Icmp => Packets::Icmp,
        Kind::Fragments => Packets::Fragments,
        Kind::Portless => Packets::Portless,
    };
    match section.get("source_ports") {
        None => Ok(packets),
        Some(node) => Err(node.fault(format!(
            "only for packets = \"answers\", not {:?}; a service names source ports like this: match = [\"udp/any from 53\"]",
            words::kind(&packets)
        ))),
    }
}

fn source_ports(node: &Node<'_>) -> Result<Vec<(u16, u16)>, Fault> {
    let mut ports = Vec::new();
    for element in node.elements("an array of ports such as [53, \"5000-5010\"]")? {
        let text = element.amount("a port such as 53, or a range such as \"5000-5010\"")?;
        ports.push(ports::parse_range(&text).map_err(|reason| element.fault(reason))?);
    }
    if ports.is_empty() {
        return Err(
            node.fault("empty, so that no packet is an answer: name ports, for example [53, 123]")
        );
    }
    Ok(ports)
}

/// Refuses packets that cannot be of a service.
pub(super) fn check(
    node: &Node<'_>,
    packets: &Packets,
    service: &ServiceSpec,
) -> Result<(), Fault> {
    let has = |protocol| service.matches.iter().any(|of| of.protocol == protocol);
    let missing = match packets {
        Packets::Any | Packets::Fragments => return Ok(()),
        Packets::TcpSyn | Packets::TcpEstablished if has(Protocol::Tcp) => return Ok(()),
        Packets::Udp | Packets::Answers(_) if has(Protocol::Udp) => return Ok(()),
        Packets::TcpSyn | Packets::TcpEstablished => "is not of TCP",
        Packets::Udp | Packets::Answers(_) => "is not of UDP",
        Packets::Icmp | Packets::Portless => "has ports, which these packets have not",
    };
    Err(node.fault(format!(
        "service `{}` {missing}, so this limit would match nothing: leave out `service` or change `packets`",
        service.name
    )))
}
