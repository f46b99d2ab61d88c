//! The policy file on real packets: what it says is done, and what changes it.

mod audit;
mod bans;
mod changes;
mod config;
mod design;
mod http;
mod leaks;
mod lists;
mod place;
mod probe;
mod refused;
mod restart;
mod watching;

use self::{
    place::{FEW, MANY, Place, done, ended, reason, refused},
    probe::{Probe, udp},
};
