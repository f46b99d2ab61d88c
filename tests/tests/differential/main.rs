//! Random frames at random times under random policies: the kernel and the host's functions agree to the last bit, and
//! both with a limiter by the book.
//!
//! `LIMITER_TEST_SEED=n` runs the seed that a failure prints.

mod agree;
mod frames;
#[path = "../../../limiter-policy/tests/model/mod.rs"]
mod model;
mod policies;
#[expect(dead_code, reason = "shared with other tests, which use more of it")]
#[path = "../../../limiter-policy/tests/world/mod.rs"]
mod world;

/// The seed to run, and to print.
fn seed() -> u64 {
    match std::env::var("LIMITER_TEST_SEED") {
        Ok(text) => text.parse().expect("LIMITER_TEST_SEED is a number"),
        Err(_) => fastrand::u64(..),
    }
}
