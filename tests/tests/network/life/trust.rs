//! Where links are pinned nobody else may write.

use std::{
    fs::{self, DirBuilder, Permissions},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown, symlink},
};

use anyhow::Result;
use limiter_lab::HOST_INTERFACE;

use crate::common::{Site, program_on, start, to_its_end};

const RUN: [&str; 7] = [
    "run",
    "--iface",
    HOST_INTERFACE,
    "--rate",
    "1/h",
    "--burst",
    "1",
];

#[test]
fn a_pin_directory_of_others_is_refused() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let shown = limiter.pin_dir.display();
    for (owner, mode) in [(65_534, 0o700), (0, 0o770), (0, 0o707), (0, 0o1777)] {
        DirBuilder::new().mode(0o700).create(&limiter.pin_dir)?;
        fs::set_permissions(&limiter.pin_dir, Permissions::from_mode(mode))?;
        chown(&limiter.pin_dir, Some(owner), None)?;
        let output = to_its_end(&mut limiter.command(&RUN))?;
        fs::remove_dir(&limiter.pin_dir)?;
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(
            String::from_utf8(output.stderr)?,
            format!(
                "limiter: --pin-dir {shown}: is of user {owner}, mode {mode:04o}; others could end enforcement there, so it must be of user 0 \
                 and writable for that user alone: chown 0 {shown} && chmod 0700 {shown}, or name another directory\n"
            )
        );
        assert_eq!(program_on(&site.host, HOST_INTERFACE)?, None);
        assert!(!limiter.socket.exists());
    }
    Ok(())
}

#[test]
fn a_pin_directory_that_is_a_symbolic_link_is_refused() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    symlink("/sys/fs/bpf", &limiter.pin_dir)?;
    let output = to_its_end(&mut limiter.command(&RUN))?;
    fs::remove_file(&limiter.pin_dir)?;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let complaint = String::from_utf8(output.stderr)?;
    assert!(complaint.contains("is not a directory"), "{complaint}");
    Ok(())
}

#[test]
fn the_pin_directory_is_for_its_user_alone() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _daemon = start(&limiter, "--rate 1/h --burst 1")?;
    let mode = fs::metadata(&limiter.pin_dir)?.permissions().mode();
    assert_eq!(mode & 0o7777, 0o700);
    Ok(())
}
