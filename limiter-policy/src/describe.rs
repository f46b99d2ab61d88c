//! A policy for people: what it does, in what order, what it costs, and what to think twice about.

mod lines;
mod order;
#[cfg(test)]
mod tests;
mod warnings;
pub(crate) mod words;

pub use self::{lines::lines, warnings::warnings};

use self::words::{duration, most, packets, service_matches, terms};
use limiter_common::policy::Matching;

use crate::{
    compile::{Compiled, CompiledLimit},
    spec::{ClassTerms, Cost, LimitSpec, Mode, Origin, Packets, Per, PolicySpec},
    units,
};

/// What is asked of a packet first, for people.
pub const PRECEDENCE: &str = "\
protected (the host's own needs), then the longest prefix of allow and ban (tie: allow), then bans made by limits, then \
limits";

pub use crate::compile::ORDER;

/// How evaluation goes on, for people.
const EVALUATION: &str = "the first that cannot admit a packet is why it is dropped, and then no other takes anything; \
                          only if all admit it, each takes its cost; one in monitor mode never drops";

/// What the tables of a policy take, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The table of sources.
    pub sources: u64,
    /// The table of sliding logs.
    pub logs: u64,
    /// The prefixes of classes, allow and ban.
    pub prefixes: u64,
    /// Bans made by limits.
    pub bans: u64,
}

impl Memory {
    /// All of it.
    #[must_use]
    pub const fn total(&self) -> u64 {
        let Self {
            sources,
            logs,
            prefixes,
            bans,
        } = *self;
        sources
            .saturating_add(logs)
            .saturating_add(prefixes)
            .saturating_add(bans)
    }
}

/// What `limiter check` prints of a policy: several lines, the last with a newline.
#[must_use]
pub fn describe(spec: &PolicySpec, compiled: &Compiled, memory: &Memory) -> String {
    let kernel = Kernel {
        limits: &compiled.limits,
        matches: &compiled.matches,
        prefixes: compiled.classes.entries().len() + compiled.lists.entries().len(),
    };
    text(spec, &kernel, memory)
}

/// What is shown of what the kernel holds.
struct Kernel<'a> {
    limits: &'a [CompiledLimit],
    matches: &'a [Matching],
    prefixes: usize,
}

fn text(spec: &PolicySpec, kernel: &Kernel<'_>, memory: &Memory) -> String {
    let mut lines = head(spec);
    lines.extend(limits(spec, kernel));
    lines.extend(costs(spec, kernel, memory));
    lines.extend(
        warnings(spec)
            .into_iter()
            .map(|warning| format!("warning: {warning}")),
    );
    lines.push(String::new());
    lines.join("\n")
}

fn head(spec: &PolicySpec) -> Vec<String> {
    let origin = match &spec.origin {
        Origin::Flags => "flags".to_owned(),
        Origin::File(path) => path.display().to_string(),
    };
    let interfaces = if spec.interfaces.is_empty() {
        "none named here; give --iface".to_owned()
    } else {
        spec.interfaces.join(", ")
    };
    let sources = &spec.sources;
    let mut lines = vec![
        format!(
            "policy of {origin}{}",
            if spec.monitor {
                ", monitoring: it drops nothing"
            } else {
                ""
            }
        ),
        format!("interfaces: {interfaces}"),
        format!(
            "a source, which has buckets of its own: an IPv4 /{} or IPv6 /{}; link-local and NAT64 (64:ff9b::/96) addresses \
             each, 6to4 (2002::/16) by /48; the same on all interfaces",
            sources.ipv4_prefix, sources.ipv6_prefix
        ),
    ];
    if spec.limits.iter().any(|limit| limit.wide.is_some()) {
        lines.push(format!(
            "a wider source: an IPv4 /{} or IPv6 /{}",
            sources.wide_ipv4_prefix, sources.wide_ipv6_prefix
        ));
    }
    lines.push(format!(
        "each of the host's own needs, per interface: {}",
        terms(&spec.needs)
    ));
    lines.push(format!("precedence: {PRECEDENCE}"));
    lines
}

fn limits(spec: &PolicySpec, kernel: &Kernel<'_>) -> Vec<String> {
    if kernel.limits.is_empty() {
        return vec!["limits: none; only the list of bans drops".to_owned()];
    }
    let mut lines = vec![
        format!("limits, in the order in which they are asked ({ORDER}):"),
        format!("  {EVALUATION}"),
    ];
    let mut ranked: Vec<_> = (0..kernel.limits.len()).collect();
    ranked.sort_by_key(|number| rank(spec, *number, &kernel.limits[*number]));
    let asked = order::asked(kernel.matches, &ranked);
    for (place, number) in asked.into_iter().enumerate() {
        if let Some(limit) = kernel.limits.get(number)
            && let Some(of) = spec.limits.get(limit.spec)
        {
            lines.extend(one(spec, place + 1, limit, of));
        }
    }
    lines
}

/// Where a limit stands among those that it shares no packets with: as [`ORDER`] says, too.
fn rank(spec: &PolicySpec, number: usize, limit: &CompiledLimit) -> impl Ord + use<> {
    let of = spec.limits.get(limit.spec);
    let place = match of.map(|of| of.per) {
        Some(Per::Source) if limit.wide => 1,
        Some(Per::Source) => 0,
        Some(Per::Service) => 2,
        Some(Per::Everyone) | None => 3,
    };
    let any = of.is_none_or(|of| of.packets == Packets::Any);
    (place, limit.service.is_none(), any, number)
}

/// A limit of the kernel, in a paragraph.
fn one(spec: &PolicySpec, place: usize, limit: &CompiledLimit, of: &LimitSpec) -> Vec<String> {
    let mut lines = vec![format!("  {place}. {} ({})", limit.name, of.mode.name())];
    let mut line = |text: String| lines.push(format!("     {text}"));
    let service = limit.service.and_then(|service| spec.services.get(service));
    line(match service {
        None => format!("for {}", packets(&of.packets)),
        Some(service) => {
            let matches = service_matches(service);
            format!(
                "for {} to service {} ({matches})",
                packets(&of.packets),
                service.name
            )
        }
    });
    let whose = match of.per {
        Per::Source if limit.wide => "each wider source".to_owned(),
        Per::Source => "each source".to_owned(),
        Per::Service => service.map_or_else(
            || "all of a service's users together".to_owned(),
            |service| format!("all users of service {} together", service.name),
        ),
        Per::Everyone => "everyone together".to_owned(),
    };
    let own = match &of.wide {
        Some(wide) if limit.wide => wide,
        _ => &of.terms,
    };
    line(format!(
        "{whose}: {} {}; {}",
        own.meter.algorithm().name(),
        terms(own),
        most(own, of.cost)
    ));
    match of.cost {
        Cost::Fixed(1) => {}
        Cost::Fixed(cost) => line(format!("a packet costs {cost}")),
        Cost::Length => line("a packet costs the bytes of its frame".to_owned()),
    }
    for (class, other) in &of.classes {
        let class = spec
            .classes
            .get(*class)
            .map_or("", |class| class.name.as_str());
        match other {
            ClassTerms::Exempt => line(format!("class {class}: exempt")),
            // A wider source is shared with others, so it keeps its terms.
            ClassTerms::Terms(_) if limit.wide => {}
            ClassTerms::Terms(other) => {
                line(format!(
                    "class {class}: {}; {}",
                    terms(other),
                    most(other, of.cost)
                ));
            }
        }
    }
    line(format!(
        "where its state cannot be kept: {}",
        of.on_error.name()
    ));
    if let Some(ban) = &of.on_exceed
        && !limit.wide
    {
        let bans = match of.mode {
            Mode::Enforce => "bans",
            Mode::Monitor => "in enforce mode would ban",
        };
        let mut text = format!(
            "{bans} a source for {} after {} refusals since its bucket was last full",
            duration(ban.length),
            ban.after
        );
        if ban.doubles {
            text.push_str(", twice as long each time");
        }
        line(text);
    }
    lines
}

fn costs(spec: &PolicySpec, kernel: &Kernel<'_>, memory: &Memory) -> Vec<String> {
    let sources = &spec.sources;
    let total = memory.total();
    let mut lines = vec![format!("memory: {total} bytes ({})", units::bytes(total))];
    let mut line = |what: &str, count: u64, bytes: u64| {
        let for_people = units::bytes(bytes);
        lines.push(format!("  {what}: {count}, {bytes} bytes ({for_people})"));
    };
    line("sources", sources.capacity.into(), memory.sources);
    if memory.logs > 0 {
        line("sliding logs", sources.log_capacity.into(), memory.logs);
    }
    if memory.bans > 0 {
        line(
            "bans made by limits",
            sources.ban_capacity.into(),
            memory.bans,
        );
    }
    line(
        "prefixes of classes, allow and ban",
        kernel.prefixes as u64,
        memory.prefixes,
    );
    lines
}
