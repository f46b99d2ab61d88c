//! What the project promises, measured on real frames.

mod accuracy;
mod disguises;
mod needs;
mod prefixes;
mod sums;
