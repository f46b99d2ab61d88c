//! Every change of policy, override, ban and mode: when, who, what before and after, why.
//!
//! [`log::AuditLog`] appends lines of JSON to `audit.log` in the state directory; [`read::read`] reads them, with or
//! without a daemon.

pub mod log;
pub mod read;
pub mod who;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::changes::moment::WallTime;
use who::Who;

/// A change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When it was made.
    pub time: WallTime,
    /// By whom.
    pub who: Who,
    /// Of what.
    pub what: What,
    /// What was in force before; null for nothing.
    pub before: Value,
    /// What is in force now; null for nothing.
    pub after: Value,
    /// Why, where somebody has said so.
    pub why: Option<String>,
}

/// What was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// The policy: at the start, by a reload, by a changed file.
    Policy,
    /// A limit's rate or burst for a time; null after it was taken back.
    Override,
    /// A ban.
    Ban,
    /// A ban that was lifted.
    Unban,
    /// Whether anything is dropped.
    Monitor,
    /// An end of enforcement.
    Unload,
}

impl What {
    /// The name in files and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Override => "override",
            Self::Ban => "ban",
            Self::Unban => "unban",
            Self::Monitor => "monitor",
            Self::Unload => "unload",
        }
    }
}

/// `GET /v1/audit`, and `limiter audit --json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// Changes, oldest first.
    pub entries: Vec<Entry>,
    /// Lines that could not be read: torn by a crash or a full disk, or written by another version.
    pub unreadable: u64,
}

/// The files, newest first: at most this many.
const FILES: usize = 5;

/// The path of the `number`th newest file: `audit.log`, `audit.log.1`, ...
fn path(directory: &Path, number: usize) -> PathBuf {
    match number {
        0 => directory.join("audit.log"),
        number => directory.join(format!("audit.log.{number}")),
    }
}
