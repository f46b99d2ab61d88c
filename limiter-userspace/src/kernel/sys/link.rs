//! System calls for links and what they hold.

use std::{
    ffi::CString,
    fs, io,
    os::{
        fd::{AsRawFd as _, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use super::{bpf, bpf_fd};

const BPF_OBJ_PIN: libc::c_long = 6;
const BPF_OBJ_GET: libc::c_long = 7;
const BPF_PROG_GET_FD_BY_ID: libc::c_long = 13;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_LINK_UPDATE: libc::c_long = 29;
const BPF_LINK_GET_FD_BY_ID: libc::c_long = 30;
const BPF_LINK_GET_NEXT_ID: libc::c_long = 31;
const BPF_LINK_DETACH: libc::c_long = 34;

/// `enum bpf_attach_type`.
const BPF_XDP: u32 = 37;

/// `union bpf_attr`, the member for pins.
#[repr(C)]
struct ObjAttr {
    pathname: u64,
    bpf_fd: u32,
    file_flags: u32,
}

/// `union bpf_attr`, the member for ids.
#[repr(C)]
#[derive(Default)]
struct IdAttr {
    id: u32,
    next_id: u32,
    open_flags: u32,
}

/// `union bpf_attr`, its `info` member.
#[repr(C)]
pub(super) struct InfoAttr {
    pub(super) bpf_fd: u32,
    pub(super) info_len: u32,
    pub(super) info: u64,
}

/// `union bpf_attr`, its `link_create` member, as far as XDP needs it.
#[repr(C)]
struct LinkCreateAttr {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

/// `union bpf_attr`, its `link_update` member.
#[repr(C)]
struct LinkUpdateAttr {
    link_fd: u32,
    new_prog_fd: u32,
    flags: u32,
    old_prog_fd: u32,
}

/// `union bpf_attr`, its `link_detach` member.
#[repr(C)]
struct LinkDetachAttr {
    link_fd: u32,
}

/// `struct bpf_link_info` of an XDP link, as far as it is needed.
#[repr(C)]
#[derive(Default)]
struct LinkInfoBytes {
    kind: u32,
    id: u32,
    program: u32,
    padding: u32,
    interface: u32,
    tail: u32,
}

const LINK_INFO_SIZE: u32 = 24;
const _: () = assert!(size_of::<LinkInfoBytes>() == LINK_INFO_SIZE as usize);

/// What an XDP link holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kernel) struct LinkInfo {
    /// Its id.
    pub(in crate::kernel) id: u32,
    /// Its program.
    pub(in crate::kernel) program: u32,
    /// The index of its interface; 0 when that is gone.
    pub(in crate::kernel) interface: u32,
}

fn by_id(id: u32) -> IdAttr {
    IdAttr {
        id,
        ..IdAttr::default()
    }
}

fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

fn pin_attr(path: &CString, bpf_fd: u32) -> ObjAttr {
    ObjAttr {
        pathname: path.as_ptr() as u64,
        bpf_fd,
        file_flags: 0,
    }
}

/// Opens what is pinned at `path`.
pub(in crate::kernel) fn open_pin(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    bpf_fd(BPF_OBJ_GET, &mut pin_attr(&path, 0))
}

/// Pins it at `path`.
pub(in crate::kernel) fn pin(fd: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    bpf(BPF_OBJ_PIN, &mut pin_attr(&path, number(fd))).map(drop)
}

/// Opens a program; for `CAP_SYS_ADMIN` only.
pub(in crate::kernel) fn program_by_id(id: u32) -> io::Result<OwnedFd> {
    bpf_fd(BPF_PROG_GET_FD_BY_ID, &mut by_id(id))
}

/// The first link whose id is above `id`; for `CAP_SYS_ADMIN` only. `None` behind the last.
pub(in crate::kernel) fn next_link(id: u32) -> io::Result<Option<(u32, OwnedFd)>> {
    let mut attr = by_id(id);
    loop {
        match bpf(BPF_LINK_GET_NEXT_ID, &mut attr) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        // What is behind the id must be zero again.
        attr = by_id(attr.next_id);
        match bpf_fd(BPF_LINK_GET_FD_BY_ID, &mut attr) {
            Ok(link) => return Ok(Some((attr.id, link))),
            // It has gone meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

/// Puts a program on an interface, with `XDP_FLAGS_*`.
pub(in crate::kernel) fn create(
    program: BorrowedFd<'_>,
    interface: u32,
    flags: u32,
) -> io::Result<OwnedFd> {
    let mut attr = LinkCreateAttr {
        prog_fd: number(program),
        target_ifindex: interface,
        attach_type: BPF_XDP,
        flags,
    };
    bpf_fd(BPF_LINK_CREATE, &mut attr)
}

/// Puts another program into a link, without a gap.
pub(in crate::kernel) fn update(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let mut attr = LinkUpdateAttr {
        link_fd: number(link),
        new_prog_fd: number(program),
        flags: 0,
        old_prog_fd: 0,
    };
    bpf(BPF_LINK_UPDATE, &mut attr).map(drop)
}

/// Takes the program off the link's interface at once, whoever else holds the link.
pub(in crate::kernel) fn detach(link: BorrowedFd<'_>) -> io::Result<()> {
    let mut attr = LinkDetachAttr {
        link_fd: number(link),
    };
    bpf(BPF_LINK_DETACH, &mut attr).map(drop)
}

/// Describes an XDP link; `None` where it is something else.
///
/// The kernel tells of any object in the same bytes, so it is asked first, in `/proc`, what it is
/// (`bpf_link_show_fdinfo`, kernel/bpf/syscall.c, 5.8).
pub(in crate::kernel) fn info(link: BorrowedFd<'_>) -> io::Result<Option<LinkInfo>> {
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", link.as_raw_fd()))?;
    if !about.lines().any(|line| line == "link_type:\txdp") {
        return Ok(None);
    }
    let mut info = LinkInfoBytes::default();
    let mut attr = InfoAttr {
        bpf_fd: number(link),
        info_len: LINK_INFO_SIZE,
        info: std::ptr::from_mut(&mut info) as u64,
    };
    bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attr)?;
    Ok(Some(LinkInfo {
        id: info.id,
        program: info.program,
        interface: info.interface,
    }))
}
