//! Everything that touches the kernel: checks before, maps and programs, interfaces, links.

pub mod attach;
pub mod bpffs;
pub mod interface;
pub mod load;
pub mod object;
pub mod pins;
pub mod preflight;
pub mod programs;
pub mod sources;
mod sys;
pub mod tables;

pub use sys::monotonic_now;
