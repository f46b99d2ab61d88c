//! The real `limiter` on real packets: hosts in network namespaces, the command line, faults.
//!
//! It needs root; what it makes are namespaces of its own. Rates are measured, so the tests run one at a time.

mod bad_input;
mod cli;
mod common;
mod hosts;
mod life;
mod metrics;
mod policy;
mod promises;
