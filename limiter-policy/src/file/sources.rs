//! `[sources]`: who shares a bucket, and how many there may be.

use super::{fault::Fault, reader::Section};
use crate::{
    defaults::{self, SOURCES},
    spec::SourcesSpec,
};

const KEYS: [&str; 7] = [
    "ipv4_prefix",
    "ipv6_prefix",
    "wide_ipv4_prefix",
    "wide_ipv6_prefix",
    "capacity",
    "log_capacity",
    "ban_capacity",
];

/// The tables of sources, logs and bans each take memory up front; more is a mistake in the unit.
const MAX_CAPACITY: u32 = 1 << 30;

pub(super) fn read(top: &Section<'_>) -> Result<SourcesSpec, Fault> {
    let Some(node) = top.get("sources") else {
        return Ok(SOURCES);
    };
    let section = node.section("a table, [sources]", &KEYS)?;
    let prefix = |key, most, default| match section.get(key) {
        Some(node) => node.integer(1, most),
        None => Ok(default),
    };
    let wide = |key, narrow_key, narrow: u8, most, default| {
        match section.get(key) {
        None => Ok(defaults::wide(default, narrow)),
        Some(node) => match node.integer(1, most)? {
            wide if wide > narrow => Err(node.fault(format!(
                "{wide} is longer than {narrow_key}, {narrow}: wider sources are made of whole sources, so write at most \
                 {narrow}"
            ))),
            wide => Ok(wide),
        },
    }
    };
    let capacity = |key, default| match section.get(key) {
        Some(node) => node.integer(1, MAX_CAPACITY),
        None => Ok(default),
    };
    let ipv4_prefix = prefix("ipv4_prefix", 32, SOURCES.ipv4_prefix)?;
    let ipv6_prefix = prefix("ipv6_prefix", 128, SOURCES.ipv6_prefix)?;
    Ok(SourcesSpec {
        ipv4_prefix,
        ipv6_prefix,
        wide_ipv4_prefix: wide(
            "wide_ipv4_prefix",
            "ipv4_prefix",
            ipv4_prefix,
            32,
            SOURCES.wide_ipv4_prefix,
        )?,
        wide_ipv6_prefix: wide(
            "wide_ipv6_prefix",
            "ipv6_prefix",
            ipv6_prefix,
            128,
            SOURCES.wide_ipv6_prefix,
        )?,
        capacity: capacity("capacity", SOURCES.capacity)?,
        log_capacity: capacity("log_capacity", SOURCES.log_capacity)?,
        ban_capacity: capacity("ban_capacity", SOURCES.ban_capacity)?,
    })
}
