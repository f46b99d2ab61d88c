//! Prometheus metrics, in the OpenMetrics text format. The number of series does not depend on traffic.

use std::fmt;

use anyhow::{Context as _, Result};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _, MetricEncoder, text},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};

use crate::report::{
    BanCounts, ByName, InterfaceStatus, LimitStatus, ListStatus, NeedCounts, SourcesStatus, Status,
};

/// The content type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of a moment.
///
/// # Errors
///
/// Never, as long as memory lasts.
pub fn encode(status: &Status) -> Result<String> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Moment(status.clone())));
    let mut out = String::new();
    text::encode(&mut out, &registry).context("cannot encode the metrics")?;
    Ok(out)
}

#[derive(Debug)]
struct Moment(Status);

type Labels<'a> = Vec<(&'a str, &'a str)>;
type Sample<'a> = (Labels<'a>, u64);

impl Collector for Moment {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Families(&mut encoder);
        daemon(&mut families, &self.0)?;
        changes(&mut families, &self.0)?;
        lists(&mut families, &self.0.lists)?;
        packets(&mut families, &self.0.interfaces)?;
        needs(&mut families, &self.0.interfaces)?;
        limits(&mut families, &self.0.limits)?;
        sources(&mut families, &self.0.sources)
    }
}

fn daemon(families: &mut Families<'_, '_>, status: &Status) -> fmt::Result {
    let version = vec![("version", status.version.as_str())];
    families.gauge(
        "limiter_build_info",
        "Version of the daemon",
        [(version, 1)],
    )?;
    families.gauge(
        "limiter_ready",
        "1 if every interface is attached",
        [(vec![], status.ready.into())],
    )?;
    families.gauge(
        "limiter_uptime_seconds",
        "Time since the daemon started",
        [(vec![], status.uptime_s)],
    )?;
    families.gauge(
        "limiter_policy_generation",
        "Policies of this daemon so far",
        [(vec![], status.policy.generation.into())],
    )?;
    families.gauge(
        "limiter_policy_reload_failed",
        "1 if the last reload failed, so that the policy before it is in force",
        [(vec![], status.policy.last_reload_failure.is_some().into())],
    )
}

fn changes(families: &mut Families<'_, '_>, status: &Status) -> fmt::Result {
    let BanCounts {
        operator,
        limit,
        policy,
    } = status.bans;
    families.gauge(
        "limiter_bans",
        "Bans in force, by who made them",
        [("operator", operator), ("limit", limit), ("policy", policy)]
            .map(|(by, count)| (vec![("by", by)], count)),
    )?;
    families.gauge(
        "limiter_overrides",
        "Overrides that operators have made and that are not over",
        [(vec![], status.overrides.len() as u64)],
    )?;
    families.counter(
        "limiter_audit_lost",
        "Changes that could not be recorded in the audit log",
        [(vec![], status.audit_lost)],
    )
}

fn lists(families: &mut Families<'_, '_>, lists: &[ListStatus]) -> fmt::Result {
    if lists.is_empty() {
        // A family without samples is none.
        return Ok(());
    }
    let samples = |count: fn(&ListStatus) -> u64| {
        lists
            .iter()
            .map(move |list| (vec![("file", list.file.as_str())], count(list)))
    };
    families.gauge(
        "limiter_list_prefixes",
        "Prefixes of the list that are in force",
        samples(|list| list.prefixes),
    )?;
    families.gauge(
        "limiter_list_skipped_lines",
        "Lines of the list that are no prefixes",
        samples(|list| list.skipped),
    )?;
    families.gauge(
        "limiter_list_kept",
        "1 if the list's last content cannot be used, so that the one before it is in force",
        samples(|list| list.kept.is_some().into()),
    )
}

fn packets(families: &mut Families<'_, '_>, interfaces: &[InterfaceStatus]) -> fmt::Result {
    families.gauge(
        "limiter_interface_attached",
        "1 if the program is on the interface, by the mode it is attached in",
        interfaces.iter().map(|i| {
            (
                vec![interface(i), ("mode", i.attach_mode.as_str())],
                i.attached.into(),
            )
        }),
    )?;
    families.counter(
        "limiter_packets_seen",
        "Frames that reached the program",
        interfaces
            .iter()
            .map(|i| (vec![interface(i)], i.packets.seen)),
    )?;
    families.counter(
        "limiter_packets_passed",
        "Frames passed to the network stack",
        interfaces
            .iter()
            .map(|i| (vec![interface(i)], i.packets.passed)),
    )?;
    families.counter(
        "limiter_packets_dropped",
        "Frames dropped, by reason",
        interfaces
            .iter()
            .flat_map(|i| by_name(i, "reason", &i.packets.dropped_by_reason)),
    )?;
    families.counter(
        "limiter_packets_would_drop",
        "Frames passed in monitor mode that would have been dropped, by reason",
        interfaces
            .iter()
            .flat_map(|i| by_name(i, "reason", &i.packets.would_drop_by_reason)),
    )?;
    families.counter(
        "limiter_odd_frames",
        "Odd frames, whatever became of them, by kind",
        interfaces.iter().flat_map(|i| by_name(i, "kind", &i.odd)),
    )
}

fn needs(families: &mut Families<'_, '_>, interfaces: &[InterfaceStatus]) -> fmt::Result {
    let samples = |count: fn(&NeedCounts) -> u64| {
        interfaces.iter().flat_map(move |i| {
            i.host_needs.iter().map(move |(need, counts)| {
                (vec![interface(i), ("need", need.as_str())], count(counts))
            })
        })
    };
    families.counter(
        "limiter_host_needs_passed",
        "The host's own needs that passed under their ceiling, by kind",
        samples(|counts| counts.passed),
    )?;
    families.counter(
        "limiter_host_needs_exceeded",
        "The host's own needs beyond their ceiling, by kind",
        samples(|counts| counts.exceeded),
    )
}

fn limits(families: &mut Families<'_, '_>, limits: &[LimitStatus]) -> fmt::Result {
    let samples = |count: fn(&LimitStatus) -> u64| {
        limits.iter().map(move |l| {
            (
                vec![("limit", l.name.as_str()), ("mode", l.mode.as_str())],
                count(l),
            )
        })
    };
    families.counter(
        "limiter_limit_passed",
        "Packets that the limit matched and that passed everything",
        samples(|limit| limit.passed),
    )?;
    families.counter(
        "limiter_limit_dropped",
        "Packets dropped by the limit",
        samples(|limit| limit.dropped),
    )?;
    families.counter(
        "limiter_limit_would_drop",
        "Packets that the limit would have dropped were it not in monitor mode",
        samples(|limit| limit.would_drop),
    )
}

fn sources(families: &mut Families<'_, '_>, sources: &SourcesStatus) -> fmt::Result {
    let mut gauge = |name, help, value| families.gauge(name, help, [(vec![], value)]);
    gauge(
        "limiter_sources_capacity",
        "Sources that the table can hold",
        sources.capacity.into(),
    )?;
    gauge(
        "limiter_sources_tracked",
        "Sources found by the last walk over the table",
        sources.tracked,
    )?;
    gauge(
        "limiter_sources_tracked_age_seconds",
        "Time since that walk",
        sources.tracked_age_s,
    )?;
    gauge(
        "limiter_sources_memory_bytes",
        "Memory of the table",
        sources.memory_bytes,
    )?;
    families.counter(
        "limiter_sources_events",
        "Work on the table, by kind",
        sources
            .events
            .iter()
            .map(|(event, count)| (vec![("event", event.as_str())], *count)),
    )
}

fn interface(interface: &InterfaceStatus) -> (&'static str, &str) {
    ("interface", interface.name.as_str())
}

fn by_name<'a>(
    status: &'a InterfaceStatus,
    label: &'static str,
    counts: &'a ByName,
) -> impl Iterator<Item = Sample<'a>> {
    counts
        .iter()
        .map(move |(name, count)| (vec![interface(status), (label, name.as_str())], *count))
}

struct Families<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl Families<'_, '_> {
    fn counter<'l>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = Sample<'l>>,
    ) -> fmt::Result {
        self.family(
            name,
            help,
            MetricType::Counter,
            samples,
            |value, encoder| ConstCounter::new(value).encode(encoder),
        )
    }

    fn gauge<'l>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = Sample<'l>>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Gauge, samples, |value, encoder| {
            ConstGauge::new(value).encode(encoder)
        })
    }

    fn family<'l>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        samples: impl IntoIterator<Item = Sample<'l>>,
        encode: fn(u64, MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in samples {
            encode(value, metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
