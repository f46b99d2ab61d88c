//! No bytes make the parser panic, and what it says of them is consistent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use limiter_common::{
    frame::SliceFrame,
    parse::{Content, MAX_TAGS, Packet, parse},
};

fuzz_target!(|bytes: &[u8]| {
    let parsed = parse(&SliceFrame(bytes));
    assert!(parsed.tags <= MAX_TAGS, "{parsed:?}");
    if parsed.content != Content::Ip {
        assert_eq!(parsed.packet, Packet::NONE, "{parsed:?}");
    }
});
