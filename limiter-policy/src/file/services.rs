//! `[services.NAME]`: what is protected.

use super::{
    cidr,
    fault::Fault,
    ports,
    reader::{Node, Section},
};
use crate::{names, spec::ServiceSpec};

const KEYS: [&str; 2] = ["match", "destinations"];

pub(super) fn read(top: &Section<'_>) -> Result<Vec<ServiceSpec>, Fault> {
    const WANTED: &str = "a table for each service, [services.NAME]";
    let Some(node) = top.get("services") else {
        return Ok(Vec::new());
    };
    let services = node.table(WANTED)?.entries();
    services
        .into_iter()
        .map(|(name, node)| read_one(name, &node))
        .collect()
}

fn read_one(name: &str, node: &Node<'_>) -> Result<ServiceSpec, Fault> {
    names::check(name).map_err(|reason| node.fault(reason))?;
    let section = node.section(
        "a table, [services.NAME], with a name of your choice",
        &KEYS,
    )?;
    let example = "its protocols and ports, for example match = [\"tcp/22\"]";
    let node = section.required("match", example)?;
    let mut matches = Vec::new();
    for element in node.elements("an array such as [\"tcp/22\", \"udp/27015-27030\"]")? {
        let text = element.string("a string such as \"tcp/22\"")?;
        matches.extend(ports::parse_match(text).map_err(|reason| element.fault(reason))?);
    }
    if matches.is_empty() {
        return Err(node.fault(format!(
            "empty, so that no packet is of this service: name {example}"
        )));
    }
    let destinations = match section.get("destinations") {
        None => Vec::new(),
        Some(node) => {
            let destinations = cidr::read_all(&node)?;
            if destinations.is_empty() {
                return Err(node.fault("empty: leave it out for any destination"));
            }
            destinations
        }
    };
    Ok(ServiceSpec {
        name: name.to_owned(),
        matches,
        destinations,
    })
}
