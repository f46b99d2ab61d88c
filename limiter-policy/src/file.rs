//! The policy file: TOML text -> [`PolicySpec`], or the first thing that is wrong with it, by line and column.
//!
//! The text is parsed into a tree that knows where everything stands; small readers on top of it take a table or value
//! each, so that every message can name the key and what to write instead.

mod cidr;
mod classes;
mod duration;
mod fault;
mod limits;
mod lists;
mod on_exceed;
mod packets;
mod ports;
mod reader;
mod services;
mod sources;
mod spans;
mod terms;
mod top;

use std::path::Path;

use toml::de::DeTable;

pub use self::{fault::FileError, spans::Spans};

use self::fault::Fault;
use crate::spec::PolicySpec;

/// A policy file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// What it means.
    pub spec: PolicySpec,
    /// Where it says so.
    pub spans: Spans,
}

/// Reads a policy file. `path` names it in messages, and relative paths in it start from its directory.
///
/// # Errors
///
/// What is wrong with it, where, and what to write instead.
pub fn parse(path: &Path, text: &str) -> Result<Parsed, FileError> {
    let (tree, errors) = DeTable::parse_recoverable(text);
    if let Some(fault) = Fault::first_syntax(text, &errors) {
        return Err(fault.locate(path, text));
    }
    let spec = top::read(path, tree.get_ref()).map_err(|fault| fault.locate(path, text))?;
    let spans = Spans::new(path, text, tree.get_ref(), &spec);
    Ok(Parsed { spec, spans })
}
