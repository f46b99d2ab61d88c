//! Everything that *decides*: frame -> headers -> source -> bucket -> verdict.
//!
//! Pure functions over bytes and words; time is an argument. The XDP program runs them on packet memory and map
//! values, the daemon runs them to explain, and the tests run them against models: nothing decides twice.
//!
//! The structs in [`policy`], [`counters`], [`source`] and [`state`] are `repr(C)` map keys and values, shared by
//! both sides. Their layouts are asserted at compile time.
#![no_std]
#![cfg_attr(target_arch = "bpf", feature(asm_experimental_arch, core_intrinsics))]
#![cfg_attr(
    target_arch = "bpf",
    expect(
        internal_features,
        reason = "the BPF target has no atomic compare-exchange"
    )
)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "packed words are taken apart by casts, and a checked conversion is a branch in the kernel"
)]

pub mod address;
pub mod counters;
pub mod frame;
pub mod judge;
pub mod limits;
pub mod meter;
mod named;
pub mod needs;
pub mod opaque;
pub mod parse;
pub mod policy;
pub mod protocol;
pub mod source;
pub mod standing;
pub mod state;
pub mod word;

#[cfg(feature = "user")]
mod pod;
