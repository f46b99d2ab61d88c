//! Which source the n-th frame of a flood bears, and where it is written.
//!
//! One definition for both sides: the laboratory includes this very file, so it can say beforehand, exactly, what the kernel will send.

/// A flood's sources and the places in the template frame that depend on them.
///
/// The source of frame `n` is `first + (index << shift)`, plus random bits under `noise`; `index` counts round from 0 to `count - 1`, or is
/// drawn from that range where `random` is set. Addresses are numbers, high half first; an IPv4 address is the low 32 bits of the low half.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The first address, high and low half.
    pub(crate) first: [u64; 2],
    /// The bits that are random in every frame, high and low half; they must be zero in `first` and outside the index.
    pub(crate) noise: [u64; 2],
    /// How many values the index takes: 1 to 2^32.
    pub(crate) count: u64,
    /// What the random draws start from; the same seed gives the same sources.
    pub(crate) seed: u64,
    /// The bit of the address that the index counts in.
    pub(crate) shift: u32,
    /// 0: the index goes round; 1: it is drawn.
    pub(crate) random: u32,
    /// 4 or 6.
    pub(crate) version: u32,
    /// Where in the frame the source address starts, bytes.
    pub(crate) source_offset: u32,
    /// Where the IPv4 header's checksum is, bytes; 0: there is none.
    pub(crate) header_checksum_offset: u32,
    /// The one's complement sum of the IPv4 header without source and checksum, in the byte order of memory.
    pub(crate) header_checksum_base: u32,
    /// Where the transport's checksum is, bytes; 0: it does not depend on the source.
    pub(crate) transport_checksum_offset: u32,
    /// The same sum for the transport's checksum.
    pub(crate) transport_checksum_base: u32,
}

impl Plan {
    /// The source address of frame `n`, high and low half.
    #[inline]
    #[must_use]
    pub(crate) fn source(&self, n: u64) -> [u64; 2] {
        let draw = mix(self.seed, n);
        let index = if self.random == 0 {
            n.checked_rem(self.count).unwrap_or(0)
        } else {
            ((draw & 0xffff_ffff).wrapping_mul(self.count)) >> 32
        };
        let [mut high, mut low] = add_shifted(self.first, index, self.shift);
        if self.noise[0] != 0 {
            high |= mix(!self.seed, draw) & self.noise[0];
        }
        if self.noise[1] != 0 {
            low |= mix(draw, self.seed) & self.noise[1];
        }
        [high, low]
    }
}

/// `address + (index << shift)` for a shift below 128 and an index of at most 32 bits.
#[inline]
fn add_shifted([high, low]: [u64; 2], index: u64, shift: u32) -> [u64; 2] {
    if shift >= 64 {
        return [high.wrapping_add(index << (shift & 63)), low];
    }
    let carried_out = if shift == 0 { 0 } else { index >> (64 - shift) };
    let (low, overflow) = low.overflowing_add(index << shift);
    [
        high.wrapping_add(carried_out)
            .wrapping_add(u64::from(overflow)),
        low,
    ]
}

/// The n-th output of `SplitMix64` for a seed.
#[inline]
fn mix(seed: u64, n: u64) -> u64 {
    let z = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Folds a one's complement sum into 16 bits.
#[inline]
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the carries are folded in until 16 bits are left"
)]
pub(crate) fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}
