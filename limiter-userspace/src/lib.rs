//! The daemon and command line of limiter.
//!
//! Data flows one way: flags -> [`settings`] (a checked, pure value) -> maps ([`kernel`]) -> verdicts -> counters ->
//! [`report`] -> socket, metrics and terminal ([`serve`], [`client`]).

pub mod activity;
pub mod audit;
pub mod changes;
pub mod check;
pub mod cli;
pub mod client;
pub mod commands;
pub mod control;
pub mod daemon;
pub mod explain;
pub mod files;
pub mod kernel;
pub mod logging;
pub mod metrics;
pub mod observer;
pub mod peer;
pub mod ranking;
pub mod report;
pub mod serve;
pub mod settings;
pub mod show;
pub mod signals;
pub mod snapshot;
pub mod socket;
pub mod unload;
pub mod upkeep;
pub mod watch;

pub use limiter_policy::units;
