//! Reports as text, for people.

pub mod audit;
pub mod changes;
mod table;

use std::fmt::Write as _;

use crate::{
    changes::answer::OverrideShown,
    cli::Proto,
    explain::{Explanation, LimitExplanation},
    report::{
        BanCounts, ByName, InterfaceStatus, LimitStatus, ListStatus, Status, Top, TopSource,
        Unloaded,
    },
    units,
};

/// How many sources of each ranking `limiter top` prints.
const SHOWN: usize = 10;

/// `limiter status`.
#[must_use]
pub fn status(status: &Status) -> String {
    let Status {
        version,
        ready,
        pid,
        uptime_s,
        policy,
        interfaces,
        limits,
        sources,
        lists,
        overrides,
        bans,
        audit_lost,
    } = status;
    let mut out = String::new();
    let state = if *ready { "ready" } else { "NOT READY" };
    line(
        &mut out,
        format_args!(
            "limiter {version}, {state}, pid {pid}, up {}",
            units::duration(uptime_s.saturating_mul(1000))
        ),
    );
    line(
        &mut out,
        format_args!(
            "policy {} from {}, {}: IPv4 sources by /{}, IPv6 by /{}",
            policy.generation, policy.source, policy.mode, policy.ipv4_prefix, policy.ipv6_prefix
        ),
    );
    for interface in interfaces {
        show_interface(&mut out, interface);
    }
    if let Some(reason) = &policy.last_reload_failure {
        line(
            &mut out,
            format_args!("  the last reload FAILED, the policy before it is in force: {reason}"),
        );
    }
    for limit in limits {
        show_limit(&mut out, limit);
    }
    for list in lists {
        show_list(&mut out, list);
    }
    for change in overrides {
        show_override(&mut out, change);
    }
    let BanCounts {
        operator,
        limit,
        policy,
    } = bans;
    if operator + limit + policy > 0 {
        line(
            &mut out,
            format_args!(
                "bans: {operator} by operators, {limit} by limits, {policy} in the policy"
            ),
        );
    }
    line(
        &mut out,
        format_args!(
            "sources: {}{} of {} tracked {} s ago, {}",
            if sources.tracked_complete {
                ""
            } else {
                "more than "
            },
            sources.tracked,
            sources.capacity,
            sources.tracked_age_s,
            units::bytes(sources.memory_bytes)
        ),
    );
    nonzero(&mut out, "  ", &sources.events);
    if *audit_lost > 0 {
        line(
            &mut out,
            format_args!("{audit_lost} changes could not be recorded in the audit log"),
        );
    }
    out
}

fn show_limit(out: &mut String, limit: &LimitStatus) {
    let LimitStatus {
        name,
        mode,
        per,
        service,
        packets,
        algorithm,
        rate,
        burst,
        passed,
        dropped,
        would_drop,
    } = limit;
    let burst = match burst {
        Some(queue) if algorithm == "leaky-bucket" => format!(" queue {queue}"),
        Some(burst) => format!(" burst {burst}"),
        None => format!(" {algorithm}"),
    };
    let of = match service {
        Some(service) => format!(" of {service}"),
        None => String::new(),
    };
    let which = if packets == "any" {
        String::new()
    } else {
        format!(", {packets}{of}")
    };
    let which = if which.is_empty() && !of.is_empty() {
        of
    } else {
        which
    };
    line(
        out,
        format_args!(
            "limit {name} ({mode}): {rate}{burst} per {per}{which}: {passed} passed, {dropped} dropped, {would_drop} would drop"
        ),
    );
}

fn show_list(out: &mut String, list: &ListStatus) {
    let ListStatus {
        file,
        prefixes,
        skipped,
        examples,
        kept,
    } = list;
    line(
        out,
        format_args!("list {file}: {prefixes} prefixes, {skipped} lines skipped"),
    );
    for example in examples.iter().take(3) {
        line(out, format_args!("  skipped {example}"));
    }
    if let Some(reason) = kept {
        line(out, format_args!("  stays as it was: {reason}"));
    }
}

fn show_override(out: &mut String, change: &OverrideShown) {
    let whom = match change.source {
        Some(source) => format!(" for {source}"),
        None => String::new(),
    };
    let terms: Vec<String> = [("rate", &change.rate), ("burst", &change.burst)]
        .into_iter()
        .filter_map(|(what, value)| Some(format!("{what} {}", value.as_ref()?)))
        .collect();
    line(
        out,
        format_args!(
            "override of {}{whom}: {}, {} left",
            change.limit,
            terms.join(" "),
            units::duration(change.remaining_s.saturating_mul(1000))
        ),
    );
}

fn show_interface(out: &mut String, interface: &InterfaceStatus) {
    let InterfaceStatus {
        name,
        ifindex,
        attached,
        attach_mode,
        attach_type,
        program_id,
        packets,
        host_needs,
        odd,
    } = interface;
    let state = if *attached {
        "attached"
    } else {
        "NOT ATTACHED"
    };
    line(
        out,
        format_args!(
            "{name} (index {ifindex}): {state}, {attach_mode} {attach_type}, program {program_id}"
        ),
    );
    line(
        out,
        format_args!(
            "  {} seen = {} passed + {} dropped",
            packets.seen, packets.passed, packets.dropped
        ),
    );
    nonzero(out, "  dropped: ", &packets.dropped_by_reason);
    nonzero(out, "  would drop: ", &packets.would_drop_by_reason);
    nonzero(
        out,
        "  host needs passed: ",
        &host_needs
            .iter()
            .map(|(need, n)| (need.clone(), n.passed))
            .collect(),
    );
    nonzero(
        out,
        "  host needs beyond ceiling: ",
        &host_needs
            .iter()
            .map(|(need, n)| (need.clone(), n.exceeded))
            .collect(),
    );
    nonzero(out, "  odd frames: ", odd);
}

/// The counts that are not zero, if any.
fn nonzero(out: &mut String, what: &str, counts: &ByName) {
    let shown: Vec<String> = counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if !shown.is_empty() {
        line(out, format_args!("{what}{}", shown.join(", ")));
    }
}

/// What becomes of a packet over the limit, in this mode.
fn fate(mode: &str) -> &'static str {
    if mode == "monitor" {
        "would drop"
    } else {
        "dropped"
    }
}

/// `limiter top`.
#[must_use]
pub fn top(top: &Top) -> String {
    let Top {
        age_s,
        mode,
        interval_ms,
        busiest,
        most_dropped,
    } = top;
    let fate = fate(mode);
    let mut out = String::new();
    match interval_ms {
        Some(ms) => line(
            &mut out,
            format_args!("sources of the last {} ({mode})", units::duration(*ms)),
        ),
        None => line(
            &mut out,
            format_args!("sources as of {age_s} s ago ({mode})"),
        ),
    }
    ranking(&mut out, "busiest", fate, busiest);
    let title = if fate == "dropped" {
        "most dropped"
    } else {
        "would drop most"
    };
    ranking(&mut out, title, fate, most_dropped);
    out
}

fn ranking(out: &mut String, title: &str, fate: &str, sources: &[TopSource]) {
    line(out, format_args!("\n{title}"));
    if sources.is_empty() {
        line(out, format_args!("  none"));
        return;
    }
    line(
        out,
        format_args!(
            "  {:<43} {:>11} {:>12} {:>14} {:>14} {:>11}",
            "source",
            "packets/s",
            format!("{fate}/s"),
            "passed",
            fate,
            "last seen"
        ),
    );
    for TopSource {
        source,
        passed,
        dropped,
        packets_per_s,
        dropped_per_s,
        last_seen_s,
    } in sources.iter().take(SHOWN)
    {
        let [packets_per_s, dropped_per_s] = [packets_per_s, dropped_per_s]
            .map(|rate| rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string()));
        let seen = units::duration(last_seen_s.saturating_mul(1000));
        line(
            out,
            format_args!(
                "  {source:<43} {packets_per_s:>11} {dropped_per_s:>12} {passed:>14} {dropped:>14} {seen:>11}"
            ),
        );
    }
}

/// `limiter explain`.
#[must_use]
pub fn explanation(explanation: &Explanation) -> String {
    let Explanation {
        address: _,
        proto: _,
        dport: _,
        sport: _,
        syn: _,
        mode,
        verdict,
        reason,
        host_need,
        source,
        rule,
        tracked,
        passed,
        dropped,
        last_seen_s,
        classes,
        listed,
        banned_by,
        ports_unknown,
        banned_for_s,
        precedence,
        limits,
    } = explanation;
    let mut out = String::new();
    let why = match (verdict.as_str(), reason) {
        (_, None) => String::new(),
        ("pass", Some(reason)) => format!(" (monitor mode; would be dropped: {reason})"),
        (_, Some(reason)) => format!(": {reason}"),
    };
    line(
        &mut out,
        format_args!("{} would now {verdict}{why}", packet(explanation)),
    );
    if let Some(need) = host_need {
        line(
            &mut out,
            format_args!(
                "it serves the host's own needs ({need}), which have a ceiling of their own"
            ),
        );
    }
    line(&mut out, format_args!("source {source}: {rule}"));
    match last_seen_s {
        Some(seconds) if *tracked => {
            line(
                &mut out,
                format_args!(
                    "  {passed} passed, {dropped} {}; last packet {} ago",
                    fate(mode),
                    units::duration(seconds.saturating_mul(1000))
                ),
            );
        }
        _ => line(
            &mut out,
            format_args!("  not in the table: its next packet starts with full buckets"),
        ),
    }
    if !classes.is_empty() {
        line(&mut out, format_args!("classes: {}", classes.join(", ")));
    }
    match (listed.as_str(), banned_for_s) {
        ("banned", left) => {
            let by = banned_by.as_deref().unwrap_or("nobody");
            let left = match left {
                Some(seconds) => {
                    format!("for {} more", units::duration(seconds.saturating_mul(1000)))
                }
                None => "without end".to_owned(),
            };
            line(&mut out, format_args!("banned by {by}, {left}"));
        }
        ("allowed", _) => line(
            &mut out,
            format_args!("allowed: it passes before all limits"),
        ),
        _ => {}
    }
    for limit in limits {
        explain_limit(&mut out, limit);
    }
    if *ports_unknown && listed == "no" {
        line(
            &mut out,
            format_args!("limits of services were not asked: name a port with --dport"),
        );
    }
    line(&mut out, format_args!("order: {precedence}"));
    out
}

fn explain_limit(out: &mut String, limit: &LimitExplanation) {
    if limit.exempt {
        line(
            out,
            format_args!(
                "limit {} ({}): does not apply to its classes",
                limit.name, limit.mode
            ),
        );
        return;
    }
    let next = match (limit.allowed, limit.retry_after_ms) {
        (true, _) => "admits the packet now".to_owned(),
        (false, Some(ms)) => format!("admits it in {}", units::duration(ms)),
        (false, None) => "never admits it: it costs more than the burst".to_owned(),
    };
    let left = if limit.unit == "bytes" {
        units::bytes(limit.tokens)
    } else {
        format!("{} {}", limit.tokens, limit.unit)
    };
    let terms = match &limit.burst {
        Some(burst) => format!("{} burst {burst}", limit.rate),
        None => format!("{} {}", limit.rate, limit.algorithm),
    };
    let class = match (&limit.class, limit.overridden_for_s) {
        (Some(class), _) => format!(" for {class}"),
        (None, Some(seconds)) => format!(
            " overridden for {} more",
            units::duration(seconds.saturating_mul(1000))
        ),
        (None, None) => String::new(),
    };
    line(
        out,
        format_args!(
            "limit {} ({}): {terms}{class}; {left} left, {next}; shared by {}",
            limit.name, limit.mode, limit.shared_by
        ),
    );
}

/// The packet that was asked about; ports that were not given are not named.
fn packet(explanation: &Explanation) -> String {
    let Explanation {
        address,
        proto,
        dport,
        sport,
        syn,
        ..
    } = explanation;
    let what = match proto {
        Proto::Tcp if *syn => "a TCP connection attempt",
        Proto::Tcp => "a TCP packet",
        Proto::Udp => "a UDP packet",
        Proto::Icmp => return format!("an ICMP echo request from {address}"),
    };
    let port = |word: &str, port: u16| match port {
        0 => String::new(),
        port => format!("{word} port {port}"),
    };
    format!(
        "{what} from {address}{}{}",
        port("", *sport),
        port(" to", *dport)
    )
}

/// `limiter unload`.
#[must_use]
pub fn unloaded(
    Unloaded {
        interfaces,
        failed: _,
        others,
    }: &Unloaded,
) -> String {
    let mut out = if interfaces.is_empty() {
        "nothing was attached\n".to_owned()
    } else {
        format!("detached from {}\n", interfaces.join(", "))
    };
    if !others.is_empty() {
        line(
            &mut out,
            format_args!(
                "still attached, by pins elsewhere: {}; name their --pin-dir and --socket",
                others.join(", ")
            ),
        );
    }
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a string takes any text");
}
