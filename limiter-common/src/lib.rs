//! Packets.
#![no_std]
