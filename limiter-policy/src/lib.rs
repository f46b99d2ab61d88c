//! The policy of limiter: a file or flags -> what was meant ([`spec`]) -> what the kernel holds ([`compile`]).
//!
//! Everything here is pure: no map, no socket, and of the file system only what is handed in.

pub mod changes;
pub mod compile;
mod defaults;
pub mod describe;
pub mod error;
pub mod file;
pub mod flags;
pub mod host;
pub mod identities;
pub mod lists;
mod names;
pub mod prefix;
pub mod spec;
pub mod terms;
pub mod units;
