//! A daemon's life: how it starts, ends, is killed, followed, and kept from harming others.

mod clients;
mod endings;
mod failing;
mod foreign;
mod keeping;
mod links;
mod notify;
mod rivals;
mod socket;
mod startup;
mod surroundings;
mod takeover;
mod trust;
mod unload;
