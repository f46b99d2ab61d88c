//! .
#![no_std]
#![no_main]
use aya_ebpf::{bindings::xdp_action, macros::xdp, programs::XdpContext};
#[xdp(frags)]
pub fn flood(ctx: XdpContext) -> u32 {
    let d = ctx.data(); let e = ctx.data_end();
    if d + 14 > e { return xdp_action::XDP_DROP; }
    let h: [u8; 14] = unsafe { *(d as *const [u8; 14]) };
    if u16::from_be_bytes([h[12], h[13]]) == 0x800 { xdp_action::XDP_PASS } else { u32::from_ne_bytes([h[0],h[1],h[2],h[3]]) & 1 }
}
#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! { loop {} }
