//! Access to the bytes of one frame.

/// The bytes of a frame, from its first header on.
///
/// Every read is bounds-checked once and returns an array, so that what follows cannot go out of bounds.
pub trait Frame {
    /// The `N` bytes at `offset`, or `None` where they are not all inside the readable part of the frame.
    fn read<const N: usize>(&self, offset: u32) -> Option<[u8; N]>;

    /// Whether the readable part of the frame reaches `end`, an offset one past the last byte wanted.
    fn reaches(&self, end: u32) -> bool;

    /// Length of the whole frame in bytes, as received: all its buffers, without the frame check sequence.
    fn length(&self) -> u32;
}

/// A frame in one slice, as tests and `explain` have it.
#[derive(Clone, Copy, Debug)]
pub struct SliceFrame<'a>(pub &'a [u8]);

impl Frame for SliceFrame<'_> {
    fn read<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        self.0.get(offset as usize..)?.first_chunk().copied()
    }

    fn reaches(&self, end: u32) -> bool {
        end as usize <= self.0.len()
    }

    fn length(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}
