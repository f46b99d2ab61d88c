//! Hosts with real sockets behind a running limiter.

mod bytes;
mod fragments;
mod generic;
mod interfaces;
mod limited;
mod monitor;
mod neighbours;
mod polite;
mod spoofed;
