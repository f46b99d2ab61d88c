//! `[[limits]]`.

use std::collections::BTreeMap;

use limiter_common::{
    meter::Algorithm,
    policy::{MAX_LIMITS, OnError},
};

use super::{
    fault::Fault,
    on_exceed, packets,
    reader::{Node, Section, dotted},
    terms::{self, Rules},
};
use crate::{
    names,
    spec::{ClassSpec, ClassTerms, Cost, LimitSpec, Mode, Per, ServiceSpec, Terms},
    units::{RateSpec, Unit},
};

const KEYS: [&str; 15] = [
    "name",
    "service",
    "packets",
    "source_ports",
    "per",
    "algorithm",
    "rate",
    "burst",
    "queue",
    "cost",
    "wide",
    "classes",
    "mode",
    "on_error",
    "on_exceed",
];

const PER: [(&str, Per); 3] = [
    (Per::Source.name(), Per::Source),
    (Per::Service.name(), Per::Service),
    (Per::Everyone.name(), Per::Everyone),
];

const MODES: [(&str, Mode); 2] = [
    (Mode::Enforce.name(), Mode::Enforce),
    (Mode::Monitor.name(), Mode::Monitor),
];

/// What limits refer to.
pub(super) struct Context<'a> {
    pub(super) services: &'a [ServiceSpec],
    pub(super) classes: &'a [ClassSpec],
    pub(super) log_capacity: u32,
}

pub(super) fn read(top: &Section<'_>, context: &Context<'_>) -> Result<Vec<LimitSpec>, Fault> {
    const WANTED: &str = "[[limits]], in two pairs of brackets, for each limit";
    let Some(node) = top.get("limits") else {
        return Ok(Vec::new());
    };
    let mut limits: Vec<LimitSpec> = Vec::new();
    for element in node.elements(WANTED)? {
        if limits.len() == MAX_LIMITS {
            return Err(element.fault(format!(
                "more than {MAX_LIMITS} limits, which is all there may be: put protocols and ports of one rate into one service"
            )));
        }
        let name = read_name(&element, WANTED, &limits)?;
        let element = element.named(dotted("limits", &name));
        limits.push(read_one(&element, name, context)?);
    }
    Ok(limits)
}

fn read_name(element: &Node<'_>, wanted: &str, before: &[LimitSpec]) -> Result<String, Fault> {
    let section = element.table(wanted)?;
    let node = section.required(
        "name",
        "what status, metrics and logs call it, for example name = \"per-source\"",
    )?;
    let name = node.string("a name such as \"per-source\"")?;
    names::check(name).map_err(|reason| node.fault(reason))?;
    if before.iter().any(|limit| limit.name == name) {
        return Err(node.fault(format!(
            "there is a limit `{name}` already: name each differently"
        )));
    }
    Ok(name.to_owned())
}

fn read_one(element: &Node<'_>, name: String, context: &Context<'_>) -> Result<LimitSpec, Fault> {
    let section = element.section("a table", &KEYS)?;
    let service = service(&section, context)?;
    let packets = packets::read(&section)?;
    if let (Some(service), Some(node)) = (service, section.get("packets")) {
        packets::check(&node, &packets, &context.services[service])?;
    }
    let per = per(&section, service, context)?;
    let algorithms = Algorithm::ALL.map(|algorithm| (algorithm.name(), algorithm));
    let algorithm = match section.get("algorithm") {
        None => Algorithm::TokenBucket,
        Some(node) => node.word(&algorithms)?,
    };
    let rate = terms::rate(&section)?;
    let cost = cost(&section, &rate, algorithm)?;
    let rules = Rules::new(algorithm, cost, context.log_capacity);
    let terms = terms::read(&section, rate, &rules)?;
    let wide = wide(&section, per, &terms, &rules)?;
    let classes = classes(&section, per, &terms, &rules, context)?;
    let mode = section
        .get("mode")
        .map_or(Ok(Mode::Enforce), |node| node.word(&MODES))?;
    let on_exceed = match section.get("on_exceed") {
        None => None,
        Some(node) => Some(on_exceed::read(&node, per, algorithm, &packets)?),
    };
    let on_error = match section.get("on_error") {
        Some(node) => node.word(&OnError::ALL.map(|on_error| (on_error.name(), on_error)))?,
        // Where state cannot be kept, a limit that sheds load must not lock anybody out; one that hunts for abuse must not
        // be passed by filling its table.
        None if on_exceed.is_some() => OnError::Drop,
        None => OnError::Pass,
    };
    Ok(LimitSpec {
        name,
        service,
        packets,
        per,
        terms,
        wide,
        cost,
        classes,
        mode,
        on_error,
        on_exceed,
    })
}

fn service(section: &Section<'_>, context: &Context<'_>) -> Result<Option<usize>, Fault> {
    let Some(node) = section.get("service") else {
        return Ok(None);
    };
    let name = node.string("the name of a service")?;
    let place = context
        .services
        .iter()
        .position(|service| service.name == name);
    if place.is_none() {
        let hint = names::suggestion(
            name,
            context.services.iter().map(|service| service.name.as_str()),
        );
        return Err(node.fault(format!("there is no [services.{name}]: {hint}")));
    }
    Ok(place)
}

fn per(section: &Section<'_>, service: Option<usize>, context: &Context<'_>) -> Result<Per, Fault> {
    let what = "who shares a bucket: per = \"source\", \"service\" or \"everyone\"";
    let node = section.required("per", what)?;
    let per = node.word(&PER)?;
    if per == Per::Service && service.is_none() && context.services.is_empty() {
        return Err(node.fault(
            "there is no service: define one, [services.NAME], or write per = \"everyone\"",
        ));
    }
    Ok(per)
}

/// The unit of the rate decides what is counted.
fn cost(section: &Section<'_>, rate: &RateSpec, algorithm: Algorithm) -> Result<Cost, Fault> {
    let node = section.get("cost");
    match (rate.unit, node) {
        (Unit::Bytes, None) => Ok(Cost::Length),
        (Unit::Packets, None) => Ok(Cost::Fixed(1)),
        (Unit::Bytes, Some(node)) => Err(node.fault(format!(
            "rate {rate} counts bytes, so a packet costs its length: leave out `cost`"
        ))),
        (Unit::Packets, Some(node)) => match node.integer(1, u32::MAX)? {
            cost if cost > 1 && algorithm == Algorithm::SlidingLog => Err(node.fault(
                "a sliding-log remembers packets, each of which costs 1: leave out `cost`, or use sliding-window",
            )),
            cost => Ok(Cost::Fixed(cost)),
        },
    }
}

fn wide(
    section: &Section<'_>,
    per: Per,
    terms: &Terms,
    rules: &Rules,
) -> Result<Option<Terms>, Fault> {
    let Some(node) = section.get("wide") else {
        return Ok(None);
    };
    if per != Per::Source {
        return Err(node.fault(format!(
            "a limit with per = {:?} has no sources, so no wider ones: leave out `wide`",
            per.name()
        )));
    }
    other_terms(
        &node,
        "a table such as { rate = \"5000/s\", burst = 10000 }",
        terms,
        rules,
    )
    .map(Some)
}

/// Terms with a rate of their own, in the limit's unit.
fn other_terms(node: &Node<'_>, wanted: &str, of: &Terms, rules: &Rules) -> Result<Terms, Fault> {
    let section = node.section(wanted, &terms::KEYS)?;
    let rate = terms::rate(&section)?;
    if rate.unit != of.rate.unit {
        let counts = |unit| match unit {
            Unit::Packets => "packets",
            Unit::Bytes => "bytes",
        };
        let node = section.get("rate").unwrap_or_else(|| node.clone());
        return Err(node.fault(format!(
            "`{rate}` counts {}, the limit's own {} counts {}: use one unit, or two limits",
            counts(rate.unit),
            of.rate,
            counts(of.rate.unit)
        )));
    }
    terms::read(&section, rate, rules)
}

fn classes(
    section: &Section<'_>,
    per: Per,
    terms: &Terms,
    rules: &Rules,
    context: &Context<'_>,
) -> Result<BTreeMap<usize, ClassTerms>, Fault> {
    let mut classes = BTreeMap::new();
    let Some(node) = section.get("classes") else {
        return Ok(classes);
    };
    for (name, node) in node
        .table("classes.NAME = \"exempt\" or terms for each class")?
        .entries()
    {
        let known = || context.classes.iter().map(|class| class.name.as_str());
        let Some(place) = known().position(|known| known == name) else {
            let hint = names::suggestion(name, known());
            return Err(node.fault(format!("there is no [classes.{name}]: {hint}")));
        };
        classes.insert(place, class_terms(&node, per, terms, rules)?);
    }
    Ok(classes)
}

fn class_terms(
    node: &Node<'_>,
    per: Per,
    terms: &Terms,
    rules: &Rules,
) -> Result<ClassTerms, Fault> {
    const WANTED: &str = "\"exempt\" or a table such as { rate = \"20000/s\", burst = 40000 }";
    if let Ok(word) = node.string(WANTED) {
        return if word == "exempt" {
            Ok(ClassTerms::Exempt)
        } else {
            Err(node.fault(format!("write {WANTED}, not the string {word:?}")))
        };
    }
    if per != Per::Source {
        return Err(node.fault(format!(
            "a limit with per = {:?} has one bucket for all classes: only \"exempt\" can be said of one",
            per.name()
        )));
    }
    Ok(ClassTerms::Terms(other_terms(node, WANTED, terms, rules)?))
}
