//! A place where frames are judged.

use std::{collections::BTreeMap, net::IpAddr};

use limiter_common::{
    counters::Counters,
    frame::SliceFrame,
    needs::Need,
    parse::{Content, Version, parse},
    policy::Policy,
    source::{SourceKey, Validity, validity},
    state::SourceState,
};
use limiter_lab::frame::Frame;

use crate::packets::{HOST, HOST6};

/// Where the clock stands when a world begins: an hour after boot.
pub const BEGIN: u64 = 3_600_000_000_000;

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `XDP_PASS`.
    Pass,
    /// `XDP_DROP`.
    Drop,
}

/// The program in the kernel, or the host's functions on plain memory.
pub trait World {
    /// Forgets everything, takes this policy, and sets the clock to [`BEGIN`].
    fn reset(&mut self, policy: &Policy);

    /// Takes another policy, and remembers everything.
    fn set_policy(&mut self, policy: &Policy);

    /// Sets the clock.
    fn set_time(&mut self, nanos: u64);

    /// Judges a frame.
    fn judge(&mut self, frame: &[u8]) -> Action;

    /// What was counted.
    fn counters(&self) -> Counters;

    /// What is remembered of a source.
    fn source(&self, key: &SourceKey) -> Option<SourceState>;

    /// All sources remembered.
    fn sources(&self) -> BTreeMap<SourceKey, SourceState>;

    /// Bucket words of the host's own needs.
    fn needs(&self) -> [u64; Need::COUNT];

    /// Sends ordinary packets from `source` until its bucket is empty.
    fn drain(&mut self, source: IpAddr) {
        let destination = match source {
            IpAddr::V4(_) => HOST.into(),
            IpAddr::V6(_) => HOST6.into(),
        };
        let frame = Frame::ip(source, destination).udp(40_000, 40_000).build();
        let mut left = 1_000_000;
        while self.judge(&frame) == Action::Pass {
            left -= 1;
            assert!(left > 0, "the bucket of {source} does not become empty");
        }
    }
}

/// The source of a frame, if it has one that could send anything else.
#[must_use]
pub fn ordinary_source(frame: &[u8]) -> Option<IpAddr> {
    let parsed = parse(&SliceFrame(frame));
    let packet = parsed.packet;
    let possible = parsed.content == Content::Ip
        && validity(packet.version, packet.source) == Validity::Ordinary;
    debug_assert!(!possible || packet.source.is_mapped() == (packet.version == Version::V4));
    possible.then(|| packet.source.into())
}
