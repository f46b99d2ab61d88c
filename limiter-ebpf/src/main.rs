//! The XDP program: runs `limiter_common` on packet memory and map values.
//!
//! It is loaded once per interface, specialised by the read-only globals in [`settings`]; all instances share the maps
//! in [`maps`].
#![no_std]
#![no_main]

mod clock;
mod frame;
mod maps;
mod settings;
mod tables;

use aya_ebpf::{bindings::xdp_action, macros::xdp, programs::XdpContext};
use limiter_common::{
    frame::Frame as _,
    judge::{Verdict, judge},
    parse::parse,
};

use crate::{
    frame::{Linear, Whole},
    tables::KernelTables,
};

/// The entry. Never `XDP_ABORTED`: that fires a tracepoint, a cost that a sender could choose.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's calling convention"
)]
#[xdp(frags)]
pub(crate) fn limiter(ctx: XdpContext) -> u32 {
    let (Some(policy), Some(counters)) = (maps::policy(), maps::counters()) else {
        return xdp_action::XDP_PASS;
    };
    let frame = Linear::new(&ctx);
    let mut parsed = parse(&frame);
    if parsed.ran_out_of_frame() && frame.length() > frame.readable() {
        parsed = parse(&Whole::new(&ctx));
    }
    let tables = KernelTables::new(&ctx);
    match judge(&frame, &parsed, &tables, policy, counters) {
        Verdict::Drop(_) if policy.monitor == 0 => xdp_action::XDP_DROP,
        Verdict::Drop(_) | Verdict::Pass => xdp_action::XDP_PASS,
    }
}

/// The kernel lends its GPL-only helpers to programs under a compatible licence only.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
