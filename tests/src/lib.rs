//! What the tests share: two worlds that judge frames, the program in the kernel and the same functions on the host,
//! and a table of packets that must fare alike in both.
#![expect(
    clippy::missing_panics_doc,
    reason = "helpers of tests panic where a test is to fail"
)]

pub mod check;
pub mod counted;
pub mod expect;
pub mod hammer;
pub mod kernel;
pub mod model;
pub mod mutate;
pub mod packets;
pub mod policies;
pub mod senders;
pub mod world;
pub mod xlated;
