//! Reports as text, for people.

use std::fmt::Write as _;

use crate::{
    explain::Explanation,
    report::{ByName, InterfaceStatus, Status, Top, TopSource, Unloaded},
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
    } = status;
    let mut out = String::new();
    let state = if *ready { "ready" } else { "NOT READY" };
    line(
        &mut out,
        format_args!(
            "limiter {version}, {state}, pid {pid}, up {}",
            duration(*uptime_s)
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
    for limit in limits {
        line(
            &mut out,
            format_args!(
                "limit {} ({}): {} burst {} per {}: {} passed, {} dropped, {} would drop",
                limit.name,
                limit.mode,
                limit.rate,
                limit.burst,
                limit.per,
                limit.passed,
                limit.dropped,
                limit.would_drop
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
    out
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

/// `limiter top`.
#[must_use]
pub fn top(top: &Top) -> String {
    let Top {
        age_s,
        busiest,
        most_dropped,
    } = top;
    let mut out = String::new();
    line(&mut out, format_args!("sources as of {age_s} s ago"));
    ranking(&mut out, "busiest", busiest);
    ranking(&mut out, "most dropped", most_dropped);
    out
}

fn ranking(out: &mut String, title: &str, sources: &[TopSource]) {
    line(out, format_args!("\n{title}"));
    if sources.is_empty() {
        line(out, format_args!("  none"));
        return;
    }
    line(
        out,
        format_args!(
            "  {:<43} {:>14} {:>14} {:>11} {:>9}",
            "source", "passed", "dropped", "packets/s", "last seen"
        ),
    );
    for TopSource {
        source,
        passed,
        dropped,
        packets_per_s,
        last_seen_s,
    } in sources.iter().take(SHOWN)
    {
        let rate = packets_per_s.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
        let seen = format!("{last_seen_s} s");
        line(
            out,
            format_args!("  {source:<43} {passed:>14} {dropped:>14} {rate:>11} {seen:>9}"),
        );
    }
}

/// `limiter explain`.
#[must_use]
pub fn explanation(explanation: &Explanation) -> String {
    let Explanation {
        address,
        verdict,
        reason,
        host_need,
        source,
        rule,
        tracked,
        passed,
        dropped,
        last_seen_s,
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
        format_args!("a packet from {address} would now {verdict}{why}"),
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
                format_args!("  {passed} passed, {dropped} dropped; last packet {seconds} s ago"),
            );
        }
        _ => line(
            &mut out,
            format_args!("  not in the table: its next packet starts with full buckets"),
        ),
    }
    for limit in limits {
        let next = match (limit.allowed, limit.retry_after_ms) {
            (true, _) => "admits the packet now".to_owned(),
            (false, Some(ms)) => format!("admits it in {ms} ms"),
            (false, None) => "never admits it: it costs more than the burst".to_owned(),
        };
        line(
            &mut out,
            format_args!(
                "limit {} ({}): {} burst {}; {} tokens left, {next}",
                limit.name, limit.mode, limit.rate, limit.burst, limit.tokens
            ),
        );
    }
    out
}

/// `limiter unload`.
#[must_use]
pub fn unloaded(
    Unloaded {
        interfaces,
        failed: _,
    }: &Unloaded,
) -> String {
    if interfaces.is_empty() {
        "nothing was attached\n".to_owned()
    } else {
        format!("detached from {}\n", interfaces.join(", "))
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a string takes any text");
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}
