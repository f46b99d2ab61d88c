//! What is wrong with a policy, and where.

use std::fmt;

/// A fault of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// What part of the policy is at fault.
    pub subject: Subject,
    /// The key in that part, such as `burst`; empty for the part itself.
    pub key: String,
    /// What is wrong, the bound, and what to write instead.
    pub reason: String,
}

/// A part of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The top of the file.
    Top,
    /// `[sources]`.
    Sources,
    /// A service, by its place in the specification.
    Service(usize),
    /// A class, likewise.
    Class(usize),
    /// A limit, likewise.
    Limit(usize),
}

impl PolicyError {
    /// A fault of a key of a part.
    #[must_use]
    pub fn new(subject: Subject, key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            subject,
            key: key.into(),
            reason: reason.into(),
        }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, reason, .. } = self;
        if key.is_empty() {
            f.write_str(reason)
        } else {
            write!(f, "{key}: {reason}")
        }
    }
}

impl std::error::Error for PolicyError {}
