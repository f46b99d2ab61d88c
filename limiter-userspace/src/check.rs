//! `limiter check` and `limiter diff`: what a policy file means, without touching anything.

use std::{io::Write, path::Path};

use anyhow::{Context as _, Result, anyhow};
use limiter_common::{
    judge::LogKey,
    meter::MeterLog,
    source::SourceKey,
    standing::{Ban, Entry, Membership},
};
use limiter_policy::{
    changes::Changes,
    compile::{Compiled, compile},
    describe,
    file::Parsed,
    identities::Identities,
};

use crate::{
    changes::own,
    control::{self, PrefixFiles, Refused},
    kernel::{prefix_map::memory, preflight},
    report::ListStatus,
    settings::PolicySource,
};

/// Says whether a policy file is right, what it means and what memory it takes.
///
/// # Errors
///
/// What is wrong with it: file, line, column, key and reason.
pub fn check(path: &Path, out: &mut impl Write) -> Result<()> {
    let (parsed, prefixes, compiled) = read(path)?;
    let spec = &parsed.spec;
    let source = PolicySource::File(path.to_owned());
    let room = control::first_room(spec, &source);
    let memory = describe::Memory {
        sources: preflight::table_bytes(room),
        prefixes: memory::bytes::<Membership>(compiled.classes.entries().len())
            + memory::bytes::<Entry>(compiled.lists.entries().len()),
        logs: hash_bytes(room.logs, LOG_BYTES),
        bans: hash_bytes(room.bans, BAN_BYTES),
    };
    let text = describe::describe(spec, &compiled, &memory);
    out.write_all(text.as_bytes()).context("cannot print")?;
    for list in prefixes.status() {
        let ListStatus {
            file,
            prefixes,
            skipped,
            examples,
            kept: _,
        } = list;
        writeln!(
            out,
            "list {file}: {prefixes} prefixes, {skipped} lines skipped"
        )
        .context("cannot print")?;
        for example in examples {
            writeln!(out, "  skipped {example}").context("cannot print")?;
        }
    }
    Ok(())
}

/// Says what a policy file would change of the one in force.
///
/// # Errors
///
/// As [`check`].
pub fn diff(path: &Path, running: &[String], out: &mut impl Write) -> Result<()> {
    let (parsed, ..) = read(path)?;
    let changes = control::difference(running, &describe::lines(&parsed.spec));
    if changes.is_empty() {
        return writeln!(out, "nothing would change").context("cannot print");
    }
    for change in changes {
        writeln!(out, "{change}").context("cannot print")?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<(Parsed, PrefixFiles, Compiled)> {
    let parsed = control::read(path)?;
    let guarded = own::guarded().context("cannot tell this host's own addresses")?;
    let prefixes = PrefixFiles::read(&parsed.spec, &PrefixFiles::default(), &guarded)
        .map_err(|reason| anyhow!(Refused(reason)))?;
    let compiled = compile(
        &parsed.spec,
        prefixes.loaded(),
        &Changes::default(),
        &mut Identities::default(),
        0,
    )
    .map_err(|error| anyhow!(Refused(parsed.spans.locate(&error).to_string())))?;
    Ok((parsed, prefixes, compiled))
}

/// Bytes of a sliding log and its key.
const LOG_BYTES: usize = size_of::<LogKey>() + size_of::<MeterLog>();
/// Bytes of a ban and its key.
const BAN_BYTES: usize = size_of::<SourceKey>() + size_of::<Ban>();

/// Bytes that the kernel takes for a hash, up front: an element has 48 bytes of its own (`struct htab_elem`).
fn hash_bytes(entries: u32, bytes: usize) -> u64 {
    u64::from(entries) * (48 + bytes as u64)
}
