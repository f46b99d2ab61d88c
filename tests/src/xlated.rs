//! A program as the verifier left it.

use std::{io, os::fd::AsRawFd as _};

use aya::programs::Xdp;

const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;

/// `struct bpf_prog_info`, its beginning (`include/uapi/linux/bpf.h`, 6.18).
#[repr(C)]
#[derive(Default)]
struct ProgramInfo {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    jited_length: u32,
    translated_length: u32,
    jited: u64,
    translated: u64,
}

/// `union bpf_attr`, its `info` member.
#[repr(C)]
struct InfoAttr {
    fd: u32,
    length: u32,
    info: u64,
}

/// One instruction: `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// The ids of the maps that the program's instructions refer to, after the verifier removed what is never reached.
///
/// # Errors
///
/// Where the kernel does not show the instructions.
pub fn maps_referred_to(program: &Xdp) -> io::Result<Vec<u32>> {
    // `BPF_LD | BPF_IMM | BPF_DW` whose source register says that the immediate is a map (`BPF_PSEUDO_MAP_FD`,
    // `BPF_PSEUDO_MAP_VALUE`); in what the kernel shows, by its id (`bpf_insn_prepare_dump`, kernel/bpf/syscall.c).
    const LOAD_WIDE: u8 = 0x18;
    const MAP: u8 = 1;
    const MAP_VALUE: u8 = 2;
    let instructions = instructions(program)?;
    let maps = instructions
        .iter()
        .filter(|i| i.code == LOAD_WIDE && matches!(i.registers >> 4, MAP | MAP_VALUE));
    let mut ids: Vec<_> = maps.map(|i| i.immediate.cast_unsigned()).collect();
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

fn instructions(program: &Xdp) -> io::Result<Vec<Instruction>> {
    let mut info = ProgramInfo::default();
    get_info(program, &mut info)?;
    let count = info.translated_length as usize / size_of::<Instruction>();
    let mut instructions = vec![Instruction::default(); count];
    info = ProgramInfo {
        translated_length: info.translated_length,
        translated: instructions.as_mut_ptr() as u64,
        ..ProgramInfo::default()
    };
    get_info(program, &mut info)?;
    if info.translated == 0 {
        return Err(io::Error::other(
            "the kernel does not show the program's instructions",
        ));
    }
    Ok(instructions)
}

fn get_info(program: &Xdp, info: &mut ProgramInfo) -> io::Result<()> {
    let fd = program.fd().map_err(io::Error::other)?;
    let mut attr = InfoAttr {
        fd: std::os::fd::AsFd::as_fd(fd).as_raw_fd().cast_unsigned(),
        length: u32::try_from(size_of::<ProgramInfo>()).map_err(io::Error::other)?,
        info: std::ptr::from_mut(info) as u64,
    };
    // SAFETY: `attr` is a prefix of `union bpf_attr` of the size given, and what it points to is valid for the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_OBJ_GET_INFO_BY_FD,
            std::ptr::from_mut(&mut attr),
            size_of::<InfoAttr>(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
