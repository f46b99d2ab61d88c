//! The laboratory's kernel side: a packet generator and the programs that only count, the floor of every measurement.
//!
//! `flood` runs by `BPF_PROG_TEST_RUN` with live frames: each run turns the template into the next frame of its plan and sends it out of the
//! interface that the run names as its ingress. One thread drives one loaded copy, so its counter needs no atomics.
#![no_std]
#![no_main]

#[path = "flood/plan.rs"]
mod plan;

use aya_ebpf::{
    bindings::xdp_action,
    macros::{map, xdp},
    maps::{Array, PerCpuArray},
    programs::XdpContext,
};
use plan::{Plan, fold};

/// Filled in by the loader before the program is verified.
#[unsafe(no_mangle)]
static PLAN: Plan = Plan {
    first: [0; 2],
    noise: [0; 2],
    count: 1,
    seed: 0,
    shift: 0,
    random: 0,
    version: 4,
    source_offset: 0,
    header_checksum_offset: 0,
    header_checksum_base: 0,
    transport_checksum_offset: 0,
    transport_checksum_base: 0,
};

/// Frames handed out so far, which is also the number of the next one.
#[map]
static GENERATED: Array<u64> = Array::with_max_entries(1, 0);

/// Frames that a counting program saw.
#[map]
static COUNTED: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// Turns the template into the next frame of the plan.
#[xdp]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the attribute hands it over so"
)]
fn flood(ctx: XdpContext) -> u32 {
    next_frame(&ctx).map_or(xdp_action::XDP_ABORTED, |()| xdp_action::XDP_TX)
}

/// Counts and drops: the least that a limiter can cost.
#[xdp(frags)]
fn count_drop(_: XdpContext) -> u32 {
    count();
    xdp_action::XDP_DROP
}

/// Counts and passes.
#[xdp(frags)]
fn count_pass(_: XdpContext) -> u32 {
    count();
    xdp_action::XDP_PASS
}

fn next_frame(ctx: &XdpContext) -> Option<()> {
    // SAFETY: the static is initialised and aligned; volatile, because the loader replaces what the compiler saw.
    let plan = unsafe { core::ptr::read_volatile(&raw const PLAN) };
    let generated = GENERATED.get_ptr_mut(0)?;
    // SAFETY: a pointer to a map value that nobody else changes.
    let n = unsafe { *generated };
    let [high, low] = plan.source(n);
    let sum = if plan.version == 4 {
        let address = low_half(low).to_be();
        write(ctx, plan.source_offset, address)?;
        u64::from(address)
    } else {
        let (high, low) = (high.to_be(), low.to_be());
        write(ctx, plan.source_offset, [high, low])?;
        halves(high) + halves(low)
    };
    if plan.header_checksum_offset != 0 {
        let check = !fold(u64::from(plan.header_checksum_base) + sum);
        write(ctx, plan.header_checksum_offset, check)?;
    }
    if plan.transport_checksum_offset != 0 {
        // A UDP checksum of zero would mean "none"; all ones is the same number.
        let check = match !fold(u64::from(plan.transport_checksum_base) + sum) {
            0 => u16::MAX,
            check => check,
        };
        write(ctx, plan.transport_checksum_offset, check)?;
    }
    // SAFETY: as above.
    unsafe { *generated = n + 1 };
    Some(())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "an IPv4 address is the low half"
)]
fn low_half(word: u64) -> u32 {
    word as u32
}

fn halves(word: u64) -> u64 {
    (word & 0xffff_ffff) + (word >> 32)
}

#[inline]
fn write<T>(ctx: &XdpContext, offset: u32, value: T) -> Option<()> {
    let start = ctx.data() + offset as usize;
    if start + size_of::<T>() > ctx.data_end() {
        return None;
    }
    // SAFETY: the whole value lies inside the frame; a frame promises no alignment.
    unsafe { (start as *mut T).write_unaligned(value) };
    Some(())
}

fn count() {
    if let Some(counted) = COUNTED.get_ptr_mut(0) {
        // SAFETY: a pointer to this CPU's own value, and a program is not interrupted by itself.
        unsafe { *counted += 1 };
    }
}

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
