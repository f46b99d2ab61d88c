//! What operators change at run time: bans, overrides and the monitor switch.
//!
//! A [`request`] is checked ([`target`], [`guard`]), put into what is [`kept`], applied to the kernel, and written to
//! the state directory ([`store`], in the form of [`document`]); [`answer`] is what is told about it.
//!
//! In memory and in the kernel a change ends by the monotonic clock, which nobody sets: a step of the wall clock neither
//! lengthens nor shortens a ban. It stands still while the machine is suspended, and so do bans. On disk ends are wall
//! times, since the monotonic clock begins anew with every boot; [`document`] says how one becomes the other.

pub mod answer;
pub mod document;
pub mod guard;
pub mod kept;
pub mod length;
pub mod moment;
pub mod own;
pub mod request;
pub mod store;
pub mod target;
pub mod text;
