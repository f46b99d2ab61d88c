//! Network interfaces, through netlink.

use std::os::fd::{AsRawFd as _, BorrowedFd};

use anyhow::{Context as _, Result, anyhow, bail};
use netlink_packet_core::{
    DefaultNla, ErrorMessage, NLM_F_ACK, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::{
    RouteNetlinkMessage,
    link::{LinkAttribute, LinkLayerType, LinkMessage, LinkXdp, XdpAttached},
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::cli::AttachMode;

/// An interface as the kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// Index.
    pub index: u32,
    /// Whether frames start with an Ethernet header.
    pub ethernet: bool,
    /// Whether it is the loopback.
    pub loopback: bool,
    /// The XDP program attached, if any.
    pub xdp: Option<AttachedXdp>,
}

/// A program on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachedXdp {
    /// Its id.
    pub program: u32,
    /// Where it runs; `None` in hardware, or in several places at once.
    pub mode: Option<AttachMode>,
}

/// The longest name, `IFNAMSIZ` without its terminating zero (`include/uapi/linux/if.h`); an alternative one may have
/// 127 bytes (`ALTIFNAMSIZ`).
const LONGEST_NAME: usize = 15;

/// `include/uapi/linux/if_link.h`, 5.5.
const IFLA_ALT_IFNAME: u16 = 53;

/// Finds an interface by name; an alternative name does as well, but the interface is then described by its own.
///
/// # Errors
///
/// Where there is none, which there are.
pub fn find(name: &str) -> Result<Interface> {
    let mut request = LinkMessage::default();
    request.attributes.push(if name.len() > LONGEST_NAME {
        // The library knows it only inside a list, where the kernel does not look (`rtnl_dev_get`, 6.12).
        LinkAttribute::Other(DefaultNla::new(IFLA_ALT_IFNAME, name.as_bytes().to_vec()))
    } else {
        LinkAttribute::IfName(name.to_owned())
    });
    match exchange(RouteNetlinkMessage::GetLink(request))? {
        Answer::Link(link) => Ok(describe(&link)),
        Answer::Refused {
            errno: libc::ENODEV,
            ..
        } => {
            bail!(
                "--iface {name}: no such interface; there are: {}",
                names().join(", ")
            )
        }
        Answer::Refused { errno, text } => {
            Err(refusal(errno, text).context(format!("--iface {name}: cannot be examined")))
        }
        Answer::Done => bail!("--iface {name}: the kernel did not describe it"),
    }
}

/// Finds an interface by index; `None` if it is gone.
///
/// # Errors
///
/// Where the kernel cannot be asked.
pub fn by_index(index: u32) -> Result<Option<Interface>> {
    let mut request = LinkMessage::default();
    request.header.index = index;
    match exchange(RouteNetlinkMessage::GetLink(request))? {
        Answer::Link(link) => Ok(Some(describe(&link))),
        Answer::Refused {
            errno: libc::ENODEV,
            ..
        }
        | Answer::Done => Ok(None),
        Answer::Refused { errno, text } => {
            Err(refusal(errno, text).context(format!("interface {index}: cannot be examined")))
        }
    }
}

/// All interfaces of this network namespace that the kernel describes.
#[must_use]
pub fn all() -> Vec<Interface> {
    names().iter().filter_map(|name| find(name).ok()).collect()
}

/// Names of all interfaces of this network namespace.
fn names() -> Vec<String> {
    nix::net::if_::if_nameindex()
        .map(|all| {
            all.iter()
                .map(|interface| interface.name().to_string_lossy().into_owned())
                .collect()
        })
        .unwrap_or_default()
}

fn describe(link: &LinkMessage) -> Interface {
    let name = link
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            LinkAttribute::IfName(name) => Some(name.clone()),
            _ => None,
        });
    Interface {
        name: name.unwrap_or_else(|| link.header.index.to_string()),
        index: link.header.index,
        ethernet: link.header.link_layer_type == LinkLayerType::Ether,
        loopback: link.header.link_layer_type == LinkLayerType::Loopback,
        xdp: link
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                LinkAttribute::Xdp(xdp) => attached(xdp),
                _ => None,
            }),
    }
}

/// What is attached, by the numbers of `IFLA_XDP_ATTACHED`, which are not those of the flags to attach with.
fn attached(xdp: &[LinkXdp]) -> Option<AttachedXdp> {
    let program = xdp.iter().find_map(|nla| match nla {
        LinkXdp::ProgId(id) if *id != 0 => Some(*id),
        _ => None,
    });
    let mode = xdp.iter().find_map(|nla| match nla {
        LinkXdp::Attached(XdpAttached::Driver) => Some(AttachMode::Native),
        LinkXdp::Attached(XdpAttached::SocketBuffer) => Some(AttachMode::Generic),
        _ => None,
    });
    // With programs in several places, no single id is given; one of them is enough to know that it is taken.
    let any = || {
        xdp.iter().find_map(|nla| match nla {
            LinkXdp::DrvProgId(id) | LinkXdp::SkbProgId(id) | LinkXdp::HwProgId(id) if *id != 0 => {
                Some(*id)
            }
            _ => None,
        })
    };
    program
        .or_else(any)
        .map(|program| AttachedXdp { program, mode })
}

/// The text with which the kernel refuses to attach a program, if it gives one.
///
/// A link is refused with a bare number; the driver's own words come on the netlink path only. So the attachment is
/// tried there once more, and undone in the unlikely case that it succeeds.
#[must_use]
pub fn refusal_text(index: u32, program: BorrowedFd<'_>, mode: AttachMode) -> Option<String> {
    let mode_flag = mode_flag(mode);
    match set_program(
        index,
        program.as_raw_fd(),
        XDP_FLAGS_UPDATE_IF_NOEXIST | mode_flag,
    ) {
        Ok(Answer::Refused { text, .. }) => text,
        Ok(Answer::Done | Answer::Link(_)) => {
            drop(set_program(index, -1, mode_flag));
            None
        }
        Err(_) => None,
    }
}

/// `include/uapi/linux/if_link.h`, 6.12.
const XDP_FLAGS_UPDATE_IF_NOEXIST: u32 = 1 << 0;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// The flag of a mode, in a request to attach.
#[must_use]
pub(super) const fn mode_flag(mode: AttachMode) -> u32 {
    match mode {
        AttachMode::Native => XDP_FLAGS_DRV_MODE,
        AttachMode::Generic => XDP_FLAGS_SKB_MODE,
    }
}

fn set_program(index: u32, fd: i32, flags: u32) -> Result<Answer> {
    let mut request = LinkMessage::default();
    request.header.index = index;
    request.attributes.push(LinkAttribute::Xdp(vec![
        LinkXdp::Fd(fd),
        LinkXdp::Flags(flags),
    ]));
    exchange(RouteNetlinkMessage::SetLink(request))
}

enum Answer {
    Link(LinkMessage),
    Done,
    Refused { errno: i32, text: Option<String> },
}

fn refusal(errno: i32, text: Option<String>) -> anyhow::Error {
    let error = anyhow!(std::io::Error::from_raw_os_error(errno));
    match text {
        Some(text) => error.context(text),
        None => error,
    }
}

/// Sends one request and waits for its answer.
fn exchange(request: RouteNetlinkMessage) -> Result<Answer> {
    let mut socket = Socket::new(NETLINK_ROUTE).context("cannot open a netlink socket")?;
    socket
        .set_ext_ack(true)
        .context("cannot ask for error texts on netlink")?;
    socket.bind_auto().context("cannot bind a netlink socket")?;
    socket
        .connect(&SocketAddr::new(0, 0))
        .context("cannot connect a netlink socket")?;
    let mut message = NetlinkMessage::from(request);
    message.header.flags = NLM_F_REQUEST | NLM_F_ACK;
    message.header.sequence_number = 1;
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0).context("cannot send on netlink")?;
    let (answer, _) = socket
        .recv_from_full()
        .context("cannot receive on netlink")?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
        .context("unexpected netlink answer")?;
    Ok(match answer.payload {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => Answer::Link(link),
        NetlinkPayload::Error(error) => match error.code {
            None => Answer::Done,
            Some(code) => Answer::Refused {
                errno: code.get().abs(),
                text: extended_text(&error),
            },
        },
        _ => Answer::Done,
    })
}

const NLMSGERR_ATTR_MSG: u16 = 1;
const NETLINK_HEADER: usize = 16;

/// The text in an error message: behind the request that it quotes come attributes, one of them a string
/// (`Documentation/userspace-api/netlink/intro.rst`, "Extended ACK").
fn extended_text(error: &ErrorMessage) -> Option<String> {
    let quoted = u32::from_ne_bytes(*error.header.first_chunk()?) as usize;
    let mut rest = error.header.get(quoted.max(NETLINK_HEADER)..)?;
    while let Some(head) = rest.first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let kind = u16::from_ne_bytes([head[2], head[3]]);
        let value = rest.get(4..length)?;
        if kind == NLMSGERR_ATTR_MSG {
            let text = value.split(|byte| *byte == 0).next()?;
            return Some(String::from_utf8_lossy(text).into_owned());
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
    None
}
