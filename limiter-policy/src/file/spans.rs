//! Where in the file everything stands, for faults that come to light only when the policy is compiled.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    fault::{FileError, line_and_column},
    reader::dotted,
};
use crate::{
    error::{PolicyError, Subject},
    spec::PolicySpec,
};

/// Where in the file everything stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spans {
    file: PathBuf,
    /// The text, in which lines are counted only when it comes to that: a list of prefixes may be long.
    text: String,
    /// In bytes, by dotted key.
    offsets: BTreeMap<String, usize>,
    services: Vec<String>,
    classes: Vec<String>,
    limits: Vec<String>,
}

impl Spans {
    pub(super) fn new(file: &Path, text: &str, top: &DeTable<'_>, spec: &PolicySpec) -> Self {
        let mut offsets = Vec::new();
        walk_table("", top, &mut offsets);
        let limits: Vec<_> = spec
            .limits
            .iter()
            .map(|limit| dotted("limits", &limit.name))
            .collect();
        let offsets = offsets
            .into_iter()
            .map(|(key, offset)| (by_name(key, &limits), offset));
        let offsets = offsets.collect();
        Self {
            file: file.to_owned(),
            text: text.to_owned(),
            offsets,
            services: spec
                .services
                .iter()
                .map(|service| dotted("services", &service.name))
                .collect(),
            classes: spec
                .classes
                .iter()
                .map(|class| dotted("classes", &class.name))
                .collect(),
            limits,
        }
    }

    /// A fault of the compiled policy, with its place in the file: that of the key at fault, or of the closest part of the
    /// file that has it.
    #[must_use]
    pub fn locate(&self, error: &PolicyError) -> FileError {
        let PolicyError {
            subject,
            key,
            reason,
        } = error;
        let named = |names: &[String], place: usize| names.get(place).cloned().unwrap_or_default();
        let part = match *subject {
            Subject::Top => String::new(),
            Subject::Sources => "sources".to_owned(),
            Subject::Service(place) => named(&self.services, place),
            Subject::Class(place) => named(&self.classes, place),
            Subject::Limit(place) => named(&self.limits, place),
        };
        let key = match (part.as_str(), key.as_str()) {
            (part, "") => part.to_owned(),
            ("", key) => key.to_owned(),
            (part, key) => format!("{part}.{key}"),
        };
        let (line, column) = line_and_column(&self.text, self.closest(&key));
        FileError {
            file: self.file.clone(),
            line,
            column,
            key,
            reason: reason.clone(),
        }
    }

    /// Where the key is, or else the part that it would be in.
    fn closest(&self, key: &str) -> usize {
        let mut key = key;
        loop {
            if let Some(offset) = self.offsets.get(key) {
                return *offset;
            }
            match key.rfind(['.', '[']) {
                Some(end) => key = &key[..end],
                None => return 0,
            }
        }
    }
}

/// `limits[2].burst` -> `limits.per-source.burst`.
fn by_name(key: String, limits: &[String]) -> String {
    let named = || {
        let (place, rest) = key.strip_prefix("limits[")?.split_once(']')?;
        let place: usize = place.parse().ok()?;
        let name = limits.get(place.checked_sub(1)?)?;
        Some(format!("{name}{rest}"))
    };
    named().unwrap_or(key)
}

fn walk_table(parent: &str, table: &DeTable<'_>, offsets: &mut Vec<(String, usize)>) {
    for (key, value) in table {
        walk(dotted(parent, key.get_ref()), value, offsets);
    }
}

fn walk(key: String, value: &Spanned<DeValue<'_>>, offsets: &mut Vec<(String, usize)>) {
    match value.get_ref() {
        DeValue::Table(table) => walk_table(&key, table, offsets),
        DeValue::Array(array) => {
            for (place, value) in array.iter().enumerate() {
                walk(format!("{key}[{}]", place + 1), value, offsets);
            }
        }
        _ => {}
    }
    offsets.push((key, value.span().start));
}
