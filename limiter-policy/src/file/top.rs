//! The top of the file.

use std::path::Path;

use limiter_common::meter::Algorithm;
use toml::de::DeTable;

use super::{
    classes,
    fault::Fault,
    limits::{self, Context},
    lists,
    reader::Section,
    services, sources, terms,
};
use crate::{
    defaults, names,
    spec::{Cost, Origin, PolicySpec, PrefixesSpec, Terms},
    units::Unit,
};

const KEYS: [&str; 11] = [
    "interfaces",
    "monitor",
    "allow",
    "allow_files",
    "ban",
    "ban_files",
    "sources",
    "needs",
    "services",
    "classes",
    "limits",
];

pub(super) fn read(path: &Path, table: &DeTable<'_>) -> Result<PolicySpec, Fault> {
    let top = Section::top(table, &KEYS)?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let interfaces = interfaces(&top)?;
    let monitor = top
        .get("monitor")
        .map_or(Ok(false), |node| node.boolean())?;
    let list =
        |inline, files| lists::read(top.get(inline).as_ref(), top.get(files).as_ref(), directory);
    let allow = list("allow", "allow_files")?;
    let ban = list("ban", "ban_files")?;
    let sources = sources::read(&top)?;
    let needs = needs(&top)?;
    let services = services::read(&top)?;
    let classes = classes::read(&top, directory)?;
    let context = Context {
        services: &services,
        classes: &classes,
        log_capacity: sources.log_capacity,
    };
    let limits = limits::read(&top, &context)?;
    if limits.is_empty() && ban == PrefixesSpec::default() {
        return Err(top.fault_at(
            "limits",
            "missing, and so is `ban`: this policy would never drop anything; write a [[limits]] with name, per, rate and \
             burst",
        ));
    }
    Ok(PolicySpec {
        origin: Origin::File(path.to_owned()),
        interfaces,
        sources,
        needs,
        monitor,
        services,
        classes,
        allow,
        ban,
        limits,
    })
}

fn interfaces(top: &Section<'_>) -> Result<Vec<String>, Fault> {
    let Some(node) = top.get("interfaces") else {
        return Ok(Vec::new());
    };
    let elements = node.elements("an array of names such as [\"eth0\"]")?;
    names::check_interface_count(elements.len()).map_err(|reason| node.fault(reason))?;
    let mut interfaces: Vec<String> = Vec::new();
    for element in elements {
        let name = element.string("a name such as \"eth0\"")?;
        names::check_interface(name)
            .map_err(|reason| element.fault(format!("{name:?} is {reason}")))?;
        if interfaces.iter().any(|known| known == name) {
            return Err(element.fault(format!("`{name}` is named twice; name each interface once")));
        }
        interfaces.push(name.to_owned());
    }
    if interfaces.is_empty() {
        return Err(
            node.fault("empty: name an interface, or leave it out and name them with --iface")
        );
    }
    Ok(interfaces)
}

/// `[needs]`: the ceiling of each of the host's own needs.
fn needs(top: &Section<'_>) -> Result<Terms, Fault> {
    let default = defaults::needs().map_err(|reason| top.fault_at("needs", reason))?;
    let Some(node) = top.get("needs") else {
        return Ok(default);
    };
    let section = node.section("a table, [needs]", &["rate", "burst"])?;
    let rate = match section.get("rate") {
        None => default.rate.clone(),
        Some(node) => terms::rate_of(&node)?,
    };
    if rate.unit != Unit::Packets {
        return Err(section.get("rate").unwrap_or(node).fault(format!(
            "`{rate}` counts bytes: the host's own needs are counted in packets, for example \"1000/s\""
        )));
    }
    if section.get("burst").is_none() {
        // Burst and rate are defaults of their own: a lower rate alone still leaves room for what comes at once.
        let size = default.size;
        return terms::token_bucket(&section, rate, size);
    }
    terms::read(
        &section,
        rate,
        &terms::Rules::new(Algorithm::TokenBucket, Cost::Fixed(1), 0),
    )
}
