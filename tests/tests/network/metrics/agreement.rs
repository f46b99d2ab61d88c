//! The metrics say what the status says.

use std::{collections::BTreeMap, net::Ipv4Addr, time::Duration};

use anyhow::Result;
use limiter_lab::{
    Flood, HOST_INTERFACE, HOST_V4, NET_INTERFACE, Sources, Stop, Wire, frame::Frame,
};
use limiter_userspace::report::{BanCounts, InterfaceStatus, Status};
use prometheus_parse::{Scrape, Value};

use super::{FLAGS, exposition::check, scrape};
use crate::common::{ATTACKER, DISCARD, Site, at_rest, start, status, wait_until};

/// Values by series, labels in the order of their names.
type Series = BTreeMap<String, u64>;

/// What a parser that others use reads.
fn parse(text: &str) -> Result<Series> {
    let scrape = Scrape::parse(text.lines().map(|line| Ok(line.to_owned())))?;
    let mut series = Series::new();
    for sample in scrape.samples {
        let (Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value)) = sample.value
        else {
            panic!("neither counter nor gauge: {sample:?}")
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts far below 2^53"
        )]
        let count = value as u64;
        let labels = if sample.labels.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", sample.labels)
        };
        assert_eq!(
            series.insert(format!("{}{labels}", sample.metric), count),
            None
        );
    }
    Ok(series)
}

/// The series that a status stands for, but those that change by themselves.
fn expected(status: &Status) -> Series {
    let mut series = Series::new();
    let mut add = |name: String, value| assert_eq!(series.insert(name, value), None);
    add(
        format!("limiter_build_info{{version=\"{}\"}}", status.version),
        1,
    );
    add("limiter_ready".to_owned(), status.ready.into());
    add(
        "limiter_policy_generation".to_owned(),
        status.policy.generation.into(),
    );
    changes(status, &mut add);
    for interface in &status.interfaces {
        let InterfaceStatus { name, packets, .. } = interface;
        let labels = |more: &str| format!("{{interface=\"{name}\"{more}}}");
        let mode = labels(&format!(",mode=\"{}\"", interface.attach_mode));
        add(
            format!("limiter_interface_attached{mode}"),
            interface.attached.into(),
        );
        add(
            format!("limiter_packets_seen_total{}", labels("")),
            packets.seen,
        );
        add(
            format!("limiter_packets_passed_total{}", labels("")),
            packets.passed,
        );
        for (reason, count) in &packets.dropped_by_reason {
            let reason = labels(&format!(",reason=\"{reason}\""));
            add(format!("limiter_packets_dropped_total{reason}"), *count);
        }
        for (reason, count) in &packets.would_drop_by_reason {
            let reason = labels(&format!(",reason=\"{reason}\""));
            add(format!("limiter_packets_would_drop_total{reason}"), *count);
        }
        for (kind, count) in &interface.odd {
            let kind = labels(&format!(",kind=\"{kind}\""));
            add(format!("limiter_odd_frames_total{kind}"), *count);
        }
        for (need, counts) in &interface.host_needs {
            let need = labels(&format!(",need=\"{need}\""));
            add(
                format!("limiter_host_needs_passed_total{need}"),
                counts.passed,
            );
            add(
                format!("limiter_host_needs_exceeded_total{need}"),
                counts.exceeded,
            );
        }
    }
    for limit in &status.limits {
        let labels = format!("{{limit=\"{}\",mode=\"{}\"}}", limit.name, limit.mode);
        add(format!("limiter_limit_passed_total{labels}"), limit.passed);
        add(
            format!("limiter_limit_dropped_total{labels}"),
            limit.dropped,
        );
        add(
            format!("limiter_limit_would_drop_total{labels}"),
            limit.would_drop,
        );
    }
    let sources = &status.sources;
    add(
        "limiter_sources_capacity".to_owned(),
        sources.capacity.into(),
    );
    add("limiter_sources_tracked".to_owned(), sources.tracked);
    add(
        "limiter_sources_memory_bytes".to_owned(),
        sources.memory_bytes,
    );
    for (event, count) in &sources.events {
        add(
            format!("limiter_sources_events_total{{event=\"{event}\"}}"),
            *count,
        );
    }
    series
}

/// Those of the policy's changes.
fn changes(status: &Status, add: &mut impl FnMut(String, u64)) {
    let failed = status.policy.last_reload_failure.is_some();
    add("limiter_policy_reload_failed".to_owned(), failed.into());
    let BanCounts {
        operator,
        limit,
        policy,
    } = status.bans;
    for (by, count) in [("operator", operator), ("limit", limit), ("policy", policy)] {
        add(format!("limiter_bans{{by=\"{by}\"}}"), count);
    }
    add(
        "limiter_overrides".to_owned(),
        status.overrides.len() as u64,
    );
    add("limiter_audit_lost_total".to_owned(), status.audit_lost);
    for list in &status.lists {
        let file = format!("{{file=\"{}\"}}", list.file);
        add(format!("limiter_list_prefixes{file}"), list.prefixes);
        add(format!("limiter_list_skipped_lines{file}"), list.skipped);
        add(
            format!("limiter_list_kept{file}"),
            list.kept.is_some().into(),
        );
    }
}

fn some_of_everything(site: &Site) -> Result<()> {
    let wire = Wire::open(&site.net, NET_INTERFACE)?;
    let datagram = Frame::ipv4(ATTACKER, HOST_V4).udp(1234, DISCARD);
    wire.send_all(&vec![datagram.build(); 200])?;
    for frame in [
        datagram.clone().tagged(&[1]).build(),
        datagram.build()[..30].to_vec(),
        datagram.clone().fragment(1480, false).build(),
        Frame::ipv4(Ipv4Addr::LOCALHOST, HOST_V4).udp(1, 2).build(),
        Frame::arp_request(ATTACKER, HOST_V4).build(),
        Frame::other(0x88f7).payload(60).build(),
    ] {
        wire.send(&frame)?;
    }
    Ok(())
}

fn agree(flags: &str) -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, flags)?;
    some_of_everything(&site)?;
    at_rest(&limiter)?;
    wait_until("the source is counted", || {
        Ok(status(&limiter)?.sources.tracked == 1)
    })?;
    let mut found = parse(&scrape(&site)?.body)?;
    for moving in [
        "limiter_uptime_seconds",
        "limiter_sources_tracked_age_seconds",
    ] {
        assert!(found.remove(moving).is_some(), "there is no {moving}");
    }
    let status = status(&limiter)?;
    assert!(status.interfaces[0].packets.seen >= 206);
    assert_eq!(found, expected(&status));
    Ok(())
}

#[test]
fn metrics_and_status_agree() -> Result<()> {
    agree(FLAGS)
}

#[test]
fn metrics_and_status_agree_in_monitor_and_generic_mode() -> Result<()> {
    agree(&format!("{FLAGS} --monitor --attach generic"))
}

#[test]
fn case_139_the_number_of_series_does_not_depend_on_traffic() -> Result<()> {
    const NEWCOMERS: u32 = 20_000;
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, FLAGS)?;
    let before = check(&scrape(&site)?.body)?;
    let flood = Flood {
        template: Frame::ipv4(ATTACKER, HOST_V4)
            .udp(1234, DISCARD)
            .payload(18)
            .template(),
        sources: Sources::rotating(Ipv4Addr::new(10, 0, 0, 1).into(), NEWCOMERS),
        packets: NEWCOMERS.into(),
        duration: Duration::from_secs(10),
        rate_per_second: Some(50_000),
        cpu: None,
    };
    flood.run(&site, &Stop::new())?;
    assert_eq!(
        at_rest(&limiter)?.sources.events["inserted"],
        u64::from(NEWCOMERS)
    );
    some_of_everything(&site)?;
    at_rest(&limiter)?;
    let after = check(&scrape(&site)?.body)?;
    assert_eq!(before, after);
    assert!(after.iter().any(|series| series.contains(HOST_INTERFACE)));
    Ok(())
}
