//! Flags that make sense, in a world that is not so: exit code 1.

use std::{fs, net::TcpListener, process::Command};

use anyhow::{Context as _, Result, anyhow, ensure};
use aya::util::nr_cpus;
use limiter_lab::{Cable, HOST_INTERFACE, HOST_V4};
use limiter_userspace::kernel::{load::Room, preflight::table_bytes};

use super::{GOOD, complaints, is_answered, run_is_answered};
use crate::common::{Site, assert_no_traces, on_host, to_its_end};

fn ip(site: &Site, words: &str) -> Result<()> {
    let output = site.host.command("ip").args(words.split(' ')).output()?;
    ensure!(output.status.success(), "ip {words}: {output:?}");
    Ok(())
}

#[test]
fn interfaces_that_are_not_there_or_not_fit() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    ip(&site, "tuntap add tun7 mode tun")?;
    let there = format!("there are: lo, {HOST_INTERFACE}, tun7");
    for (name, message) in [
        ("nowhere0", format!("--iface nowhere0: no such interface; {there}")),
        ("..", format!("--iface ..: no such interface; {there}")),
        ("lim0.100", format!("--iface lim0.100: no such interface; {there}")),
        ("LIM0", format!("--iface LIM0: no such interface; {there}")),
        (
            "lo",
            "--iface lo: is the loopback, whose sources limiter drops as impossible; name the interface to the network".to_owned(),
        ),
        (
            "tun7",
            "--iface tun7: has no Ethernet header (tun, wg, ppp, ...), which this version needs; name the interface below it".to_owned(),
        ),
    ] {
        for names in [name.to_owned(), format!("{HOST_INTERFACE},{name}")] {
            let mut command = limiter.command(&["run", "--iface", &names, "--rate", "1/s", "--burst", "1"]);
            is_answered(&site, &limiter, &mut command, (1, &message))?;
        }
    }
    Ok(())
}

#[test]
fn case_92_a_driver_without_native_xdp_is_named_with_what_to_try() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    ip(&site, "link add br0 up type bridge")?;
    let mut command = limiter.command(&["run", "--iface", "br0", "--rate", "1/s", "--burst", "1"]);
    let message = "--iface br0: the driver refuses native XDP: Underlying driver does not support XDP in native mode (Operation not supported \
                   (os error 95)); it has no native XDP, or try --attach generic, which is slower and works with any driver";
    is_answered(&site, &limiter, &mut command, (1, message))
}

#[test]
fn case_94_a_veth_pair_with_too_few_queues_is_named_with_what_to_try() -> Result<()> {
    let cable = Cable {
        mtu: 1500,
        queues: 1,
        static_neighbours: true,
    };
    let site = Site::with_cable(cable)?;
    let limiter = site.limiter()?;
    ip(
        &site,
        "link add few0 numtxqueues 1 numrxqueues 1 up type veth peer name many0 numtxqueues 4 numrxqueues 4",
    )?;
    let mut command = limiter.command(&["run", "--iface", "few0", "--rate", "1/s", "--burst", "1"]);
    let output = to_its_end(&mut command)?;
    let [complaint] = &complaints(&output)?[..] else {
        panic!("one line: {output:?}")
    };
    assert_eq!(output.status.code(), Some(1));
    for part in [
        "limiter: --iface few0: the driver refuses native XDP: ",
        "(No space left on device (os error 28)); the other end has more queues than this one; give it more (ethtool -L few0 rx N)",
        ", or try --attach generic, which is slower and works with any driver",
    ] {
        assert!(complaint.contains(part), "{complaint}");
    }
    assert_no_traces(&site, &limiter, "a refused start")
}

#[test]
fn tables_too_small_for_the_cpus_or_too_large_for_the_memory() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let cpus = nr_cpus().map_err(|(file, error)| anyhow!("read {file}: {error}"))?;
    let least = 1024 * cpus;
    for count in [0, 1, 100, least - 1] {
        let message = format!(
            "--max-sources {count}: too few for {cpus} possible CPUs, since the kernel frees entries in batches per CPU; the lowest is {least} (1024 \
             per CPU)"
        );
        run_is_answered(
            &site,
            &limiter,
            &format!("{GOOD} --max-sources {count}"),
            (1, &message),
        )?;
    }
    // 618 GB: no machine that runs this has three quarters of that free.
    let too_many = format!("{GOOD} --max-sources 4_294_967_295");
    let output = to_its_end(limiter.command(&["run"]).args(on_host(&too_many)))?;
    assert_eq!(output.status.code(), Some(1));
    let [complaint] = &complaints(&output)?[..] else {
        panic!("one line: {output:?}")
    };
    let start = format!(
        "limiter: --max-sources 4294967295: the table would take {} bytes (618.5 GB), more than three quarters of the ",
        table_bytes(Room {
            sources: u32::MAX,
            slots: 1,
            logs: 1,
            bans: 1,
        })
    );
    assert!(
        complaint.starts_with(&start) && complaint.ends_with(" sources would fit"),
        "{complaint}"
    );
    assert_no_traces(&site, &limiter, "a refused start")
}

#[test]
fn addresses_ports_and_groups_that_cannot_be_had() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let _taken = site.host.run(|| Ok(TcpListener::bind((HOST_V4, 9433))?))?;
    for (words, message) in [
        (
            "--metrics 192.0.2.1:9433",
            "--metrics 192.0.2.1:9433: cannot be bound; name an address of this host and a free port: Address already in use (os error 98)",
        ),
        (
            "--metrics 203.0.113.1:9433",
            "--metrics 203.0.113.1:9433: cannot be bound; name an address of this host and a free port: Cannot assign requested address (os error 99)",
        ),
        (
            "--socket-group no-such-group",
            "--socket-group no-such-group: no such group; see `getent group`",
        ),
    ] {
        run_is_answered(&site, &limiter, &format!("{GOOD} {words}"), (1, message))?;
    }
    Ok(())
}

#[test]
fn sockets_where_none_can_be() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("file");
    fs::write(&file, "important")?;
    let file = file.to_str().context("a path in UTF-8")?;
    let long = format!("/tmp/{}", "x".repeat(108));
    for (path, message) in [
        (file, "there is a file that is no socket; name another path"),
        ("/", "there is a file that is no socket; name another path"),
        (
            &format!("{file}/x.sock"),
            "its directory cannot be made: File exists (os error 17)",
        ),
        (
            "/proc/x.sock",
            "cannot be bound: No such file or directory (os error 2)",
        ),
        (
            &long,
            "113 bytes; a socket's path has at most 107, name a shorter one",
        ),
    ] {
        let message = format!("--socket {path}: {message}");
        run_is_answered(
            &site,
            &limiter,
            &format!("{GOOD} --socket {path}"),
            (1, &message),
        )?;
    }
    assert_eq!(fs::read_to_string(file)?, "important");
    Ok(())
}

/// `limiter run` with pins elsewhere.
fn pinning_to(limiter: &limiter_lab::Limiter<'_>, path: &str) -> Command {
    let mut command = limiter.command(&["run"]);
    command.args(on_host(GOOD)).args(["--pin-dir", path]);
    command
}

#[test]
fn pins_where_none_can_be() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let directory = tempfile::tempdir()?;
    let elsewhere = directory.path().to_str().context("a path in UTF-8")?;
    for (path, message) in [
        (
            elsewhere,
            format!(
                "not on a BPF file system; use a directory under /sys/fs/bpf, or mount one: mkdir -p {elsewhere} && mount -t bpf -o mode=0700 bpf {elsewhere}"
            ),
        ),
        (
            "/sys/fs/bpf/limiter.lab",
            "the BPF file system takes no name with a dot".to_owned(),
        ),
    ] {
        let message = format!("--pin-dir {path}: {message}");
        is_answered(
            &site,
            &limiter,
            &mut pinning_to(&limiter, path),
            (1, &message),
        )?;
    }
    assert_eq!(fs::read_dir(&directory)?.count(), 0);
    Ok(())
}

#[test]
fn nobody_is_told_to_mount_over_the_root_directory() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    for path in ["/no-such-directory/pins", "pins"] {
        let output = to_its_end(&mut pinning_to(&limiter, path))?;
        assert_eq!(output.status.code(), Some(1));
        let [complaint] = &complaints(&output)?[..] else {
            panic!("one line: {output:?}")
        };
        assert!(!complaint.ends_with(" bpf /"), "{complaint}");
    }
    Ok(())
}

#[test]
fn directories_made_for_pins_are_removed_again() -> Result<()> {
    let site = Site::new()?;
    let limiter = site.limiter()?;
    let above = limiter.pin_dir.clone();
    let below = above.join("a/b");
    let mut command = limiter.command(&[
        "run",
        "--iface",
        HOST_INTERFACE,
        "--rate",
        "1/s",
        "--burst",
        "1",
    ]);
    // Refused only after the directory was made.
    ip(&site, "link add br0 up type bridge")?;
    command
        .arg("--iface")
        .arg("br0")
        .arg("--pin-dir")
        .arg(&below);
    let output = to_its_end(&mut command)?;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let left = above.exists();
    // Not to be left to the other tests either.
    for directory in below.ancestors().take(3) {
        drop(fs::remove_dir(directory));
    }
    assert!(!left, "{} is left", above.display());
    Ok(())
}
