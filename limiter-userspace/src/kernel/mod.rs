//! Everything that touches the kernel: checks before, maps and programs, interfaces, links.

pub mod apply;
pub mod attach;
pub mod bpffs;
pub mod flip;
pub mod interface;
pub mod link;
pub mod load;
pub mod lock;
pub mod map;
pub mod object;
pub mod pins;
pub mod plan;
pub mod prefix_map;
pub mod preflight;
pub mod programs;
pub mod refusal;
pub mod sources;
mod sys;
pub mod tables;

pub use sys::monotonic_now;
