//! The laboratory against a real kernel. Needs root, and fails without.

mod clients;
mod common;
mod flood;
mod frames;
mod lab;
