//! A network of one's own: namespaces joined by a veth pair, and everything that can be sent over it.
//!
//! For the demo, the network tests and the benchmarks. It needs root and the `ip` command, touches nothing outside the namespaces it makes, and
//! cleans up when dropped. Whatever takes time ends early when its [`Stop`] is asked to.
//!
//! ```no_run
//! use std::{net::Ipv4Addr, time::Duration};
//!
//! use limiter_lab::{ECHO_PORT, EchoServer, Flood, HOST_V4, Lab, Manner, Polite, Sources, Stop, frame::Frame};
//!
//! # fn main() -> anyhow::Result<()> {
//! let stop = Stop::new();
//! let lab = Lab::new("demo")?;
//! let _server = EchoServer::start(&lab)?;
//! let udp = Manner::Udp { port: ECHO_PORT };
//! let client = Polite::new(HOST_V4.into(), udp, Duration::from_secs(5)).start(&lab, &stop)?;
//! let attacker = Ipv4Addr::new(198, 51, 100, 7);
//! let flood = Flood {
//!     template: Frame::ipv4(attacker, HOST_V4).udp(1234, 9).payload(18).template(),
//!     sources: Sources::one(attacker.into()),
//!     packets: 1_500_000,
//!     duration: Duration::from_secs(10),
//!     rate_per_second: Some(300_000),
//!     cpu: None,
//! };
//! let sent = flood.run(&lab, &stop)?;
//! println!("beside {} packets, {} requests were lost", sent.packets, client.join()?.lost());
//! # Ok(())
//! # }
//! ```

pub mod frame;

mod counter;
mod echo;
mod flood;
mod ip;
mod lab;
mod limiter;
mod link;
mod mac;
mod netns;
mod object;
mod offload;
mod pace;
mod paced;
#[path = "../../limiter-ebpf/src/bin/flood/plan.rs"]
mod plan;
mod polite;
mod sources;
mod stop;
mod task;
mod veth;
mod wire;

pub use counter::{Counter, Mode, Verdict};
pub use echo::{ECHO_PORT, EchoServer};
pub use flood::{Flood, Sent};
pub use lab::{
    HOST_INTERFACE, HOST_MAC, HOST_V4, HOST_V6, Lab, NET_INTERFACE, NET_MAC, NET_V4, NET_V6,
};
pub use limiter::{Daemon, Limiter};
pub use link::{Counters, counters};
pub use mac::Mac;
pub use netns::{Namespace, remove_leftovers, require_root};
pub use offload::{Offload, set_offload};
pub use paced::{Kept, Paced};
pub use polite::{Answers, Manner, Polite};
pub use sources::Sources;
pub use stop::Stop;
pub use task::{Progress, Task};
pub use veth::{Cable, End, add_addresses, lay};
pub use wire::{Tap, Wire};
