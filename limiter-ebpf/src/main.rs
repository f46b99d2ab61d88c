//! The XDP program: runs `limiter_common` on packet memory and map values.
//!
//! It is loaded once per interface, specialised by the read-only globals in [`settings`]; all instances share the maps
//! in [`maps`].
#![no_std]
#![no_main]
#![expect(
    clippy::cast_possible_truncation,
    reason = "a BPF machine has 64 bits, and what is cast is in range"
)]

mod clock;
mod frame;
mod functions;
mod maps;
mod settings;
mod tables;

use aya_ebpf::{bindings::xdp_action, macros::xdp, programs::XdpContext};
use limiter_common::{
    counters::Reason,
    frame::Frame as _,
    judge::{self, InForce, Request, Step, Verdict, settle},
    parse::parse,
    policy::Force,
};

use crate::{
    frame::{Linear, Whole},
    tables::KernelTables,
};

/// The entry. Never `XDP_ABORTED`: that fires a tracepoint, a cost that a sender could choose.
///
/// Its steps are functions of their own for the sake of their stacks. They find the maps again, but not the policy: the
/// word that puts one in force is read once per packet.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the macro's calling convention"
)]
#[xdp(frags)]
pub(crate) fn limiter(ctx: XdpContext) -> u32 {
    let force = force_now();
    let mut request = Request::NONE;
    let reason = match classify(&ctx, force, &mut request) {
        Step::Ask => Reason::from_number(functions::ask(&raw const request, force.0)),
        step => step.reason(),
    };
    conclude(reason, force)
}

/// Parses the frame and decides all but the limits.
#[inline(never)]
fn classify(ctx: &XdpContext, force: Force, request: &mut Request) -> Step {
    let (Some(policy), Some(counters)) = (maps::policy(force.policy()), maps::counters()) else {
        return Step::Pass;
    };
    let frame = Linear::new(ctx);
    let mut parsed = parse(&frame);
    if parsed.ran_out_of_frame() && frame.length() > frame.readable() {
        parsed = parse(&Whole::new(ctx));
    }
    let rules = InForce { force, policy };
    judge::classify(&frame, &parsed, &KernelTables, rules, counters, request)
}

/// Counts the verdict, and turns it into an action.
#[inline(never)]
fn conclude(reason: Option<Reason>, force: Force) -> u32 {
    let Some(counters) = maps::counters() else {
        return xdp_action::XDP_PASS;
    };
    match settle(reason, force, counters) {
        Verdict::Drop(_) if !force.monitor() => xdp_action::XDP_DROP,
        Verdict::Drop(_) | Verdict::Pass => xdp_action::XDP_PASS,
    }
}

/// What is in force: the current policy, or the one before once the current one's time is over.
#[inline(never)]
fn force_now() -> Force {
    let Some(flip) = maps::flip() else {
        return Force(0);
    };
    let revert_at = flip.revert_at.load();
    if revert_at != 0 && clock::now() >= revert_at {
        Force(flip.before.load())
    } else {
        Force(flip.current.load())
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
