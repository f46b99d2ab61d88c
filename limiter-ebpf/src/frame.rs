//! Packet memory as a [`Frame`].

use core::mem::MaybeUninit;

use aya_ebpf::{
    EbpfContext as _,
    bindings::xdp_md,
    helpers::generated::{bpf_xdp_get_buff_len, bpf_xdp_load_bytes},
    programs::XdpContext,
};
use limiter_common::frame::Frame;
use limiter_common::opaque::opaque;

/// The first buffer of a frame, read directly. Most frames have no other.
pub(crate) struct Linear {
    ctx: *mut xdp_md,
    start: usize,
    end: usize,
}

impl Linear {
    #[inline(always)]
    pub(crate) fn new(ctx: &XdpContext) -> Self {
        Self {
            ctx: ctx.as_ptr().cast(),
            start: ctx.data(),
            end: ctx.data_end(),
        }
    }

    /// Bytes that can be read directly.
    #[inline(always)]
    pub(crate) fn readable(&self) -> u32 {
        narrow((self.end - self.start) as u64)
    }
}

impl Frame for Linear {
    #[inline(always)]
    fn read<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        let at = self.start + offset as usize;
        // LLVM turns `at + 1 > end` into `at >= end`, from which the verifier learns nothing.
        let past = if N == 1 {
            opaque((at + N) as u64) as usize
        } else {
            at + N
        };
        if past > self.end {
            return None;
        }
        // SAFETY: the bytes lie between the packet's start and end, which the verifier checks once more.
        Some(unsafe { *(at as *const [u8; N]) })
    }

    #[inline(always)]
    fn reaches(&self, end: u32) -> bool {
        self.start + end as usize <= self.end
    }

    #[inline(always)]
    fn length(&self) -> u32 {
        buffer_length(self.ctx)
    }
}

/// All buffers of a frame, read by copying.
pub(crate) struct Whole {
    ctx: *mut xdp_md,
    length: u32,
}

impl Whole {
    #[inline(always)]
    pub(crate) fn new(ctx: &XdpContext) -> Self {
        let ctx = ctx.as_ptr().cast();
        Self {
            ctx,
            length: buffer_length(ctx),
        }
    }
}

impl Frame for Whole {
    #[inline(always)]
    fn read<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        let mut bytes = MaybeUninit::<[u8; N]>::uninit();
        // SAFETY: the context is the program's own, and the helper writes N bytes or fails.
        let error = unsafe {
            bpf_xdp_load_bytes(
                self.ctx,
                offset,
                bytes.as_mut_ptr().cast(),
                narrow(N as u64),
            )
        };
        if error != 0 {
            return None;
        }
        // SAFETY: the helper wrote all N bytes.
        Some(unsafe { bytes.assume_init() })
    }

    #[inline(always)]
    fn reaches(&self, end: u32) -> bool {
        end <= self.length
    }

    #[inline(always)]
    fn length(&self) -> u32 {
        self.length
    }
}

/// Length of the frame over all its buffers.
#[inline(always)]
fn buffer_length(ctx: *mut xdp_md) -> u32 {
    // SAFETY: the context is the program's own.
    narrow(unsafe { bpf_xdp_get_buff_len(ctx) })
}

/// A length of a frame or a part of it, which fits 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "no frame is that long")]
#[inline(always)]
const fn narrow(length: u64) -> u32 {
    length as u32
}
