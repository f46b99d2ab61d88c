//! Prometheus metrics, in the OpenMetrics text format. The number of series does not depend on traffic.

use std::fmt;

use anyhow::{Context as _, Result};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _, MetricEncoder, text},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};

use crate::report::Status;

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
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Self(status) = self;
        let Status {
            version,
            ready,
            pid: _,
            uptime_s,
            policy,
            interfaces,
            limits,
            sources,
        } = status;
        let mut family = Families(&mut encoder);

        family.gauge(
            "limiter_build_info",
            "Version of the daemon",
            [(vec![("version", version.as_str())], 1)],
        )?;
        family.gauge(
            "limiter_ready",
            "1 if every interface is attached",
            [(vec![], u64::from(*ready))],
        )?;
        family.gauge(
            "limiter_uptime_seconds",
            "Time since the daemon started",
            [(vec![], *uptime_s)],
        )?;
        family.gauge(
            "limiter_policy_generation",
            "Policies of this daemon so far",
            [(vec![], policy.generation.into())],
        )?;

        family.gauge(
            "limiter_interface_attached",
            "1 if the program is on the interface, by the mode it is attached in",
            interfaces.iter().map(|i| {
                (
                    vec![
                        ("interface", i.name.as_str()),
                        ("mode", i.attach_mode.as_str()),
                    ],
                    u64::from(i.attached),
                )
            }),
        )?;
        let per_interface = |count: fn(&crate::report::PacketCounts) -> u64| {
            interfaces
                .iter()
                .map(move |i| (vec![("interface", i.name.as_str())], count(&i.packets)))
        };
        family.counter(
            "limiter_packets_seen",
            "Frames that reached the program",
            per_interface(|p| p.seen),
        )?;
        family.counter(
            "limiter_packets_passed",
            "Frames passed to the network stack",
            per_interface(|p| p.passed),
        )?;
        family.counter(
            "limiter_packets_dropped",
            "Frames dropped, by reason",
            interfaces
                .iter()
                .flat_map(|i| by_name(&i.name, "reason", &i.packets.dropped_by_reason)),
        )?;
        family.counter(
            "limiter_packets_would_drop",
            "Frames passed in monitor mode that would have been dropped, by reason",
            interfaces
                .iter()
                .flat_map(|i| by_name(&i.name, "reason", &i.packets.would_drop_by_reason)),
        )?;
        family.counter(
            "limiter_host_needs_passed",
            "The host's own needs that passed under their ceiling, by kind",
            interfaces.iter().flat_map(|i| {
                i.host_needs.iter().map(|(need, n)| {
                    (
                        vec![("interface", i.name.as_str()), ("need", need.as_str())],
                        n.passed,
                    )
                })
            }),
        )?;
        family.counter(
            "limiter_host_needs_exceeded",
            "The host's own needs beyond their ceiling, by kind",
            interfaces.iter().flat_map(|i| {
                i.host_needs.iter().map(|(need, n)| {
                    (
                        vec![("interface", i.name.as_str()), ("need", need.as_str())],
                        n.exceeded,
                    )
                })
            }),
        )?;
        family.counter(
            "limiter_odd_frames",
            "Odd frames, whatever became of them, by kind",
            interfaces
                .iter()
                .flat_map(|i| by_name(&i.name, "kind", &i.odd)),
        )?;

        let per_limit = |count: fn(&crate::report::LimitStatus) -> u64| {
            limits.iter().map(move |l| {
                (
                    vec![("limit", l.name.as_str()), ("mode", l.mode.as_str())],
                    count(l),
                )
            })
        };
        family.counter(
            "limiter_limit_passed",
            "Packets that the limit matched and that passed",
            per_limit(|l| l.passed),
        )?;
        family.counter(
            "limiter_limit_dropped",
            "Packets dropped by the limit",
            per_limit(|l| l.dropped),
        )?;
        family.counter(
            "limiter_limit_would_drop",
            "Packets that the limit would have dropped were it not in monitor mode",
            per_limit(|l| l.would_drop),
        )?;

        family.gauge(
            "limiter_sources_capacity",
            "Sources that the table can hold",
            [(vec![], sources.capacity.into())],
        )?;
        family.gauge(
            "limiter_sources_tracked",
            "Sources found by the last walk over the table",
            [(vec![], sources.tracked)],
        )?;
        family.gauge(
            "limiter_sources_tracked_age_seconds",
            "Time since that walk",
            [(vec![], sources.tracked_age_s)],
        )?;
        family.gauge(
            "limiter_sources_memory_bytes",
            "Memory of the table",
            [(vec![], sources.memory_bytes)],
        )?;
        family.counter(
            "limiter_sources_events",
            "Work on the table, by kind",
            sources
                .events
                .iter()
                .map(|(event, count)| (vec![("event", event.as_str())], *count)),
        )
    }
}

fn by_name<'a>(
    interface: &'a str,
    label: &'static str,
    counts: &'a crate::report::ByName,
) -> impl Iterator<Item = (Labels<'a>, u64)> {
    counts.iter().map(move |(name, count)| {
        (
            vec![("interface", interface), (label, name.as_str())],
            *count,
        )
    })
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
