//! Namespaces and cables.

use std::{
    fs,
    net::IpAddr,
    process::Command,
    time::{Duration, Instant},
};

use limiter_lab::{
    Cable, HOST_INTERFACE, HOST_V4, Lab, Manner, NET_INTERFACE, NET_V4, Namespace, Offload, Polite,
    Stop, Tap, remove_leftovers, set_offload,
};

use crate::common::{alone, lab};

fn exists(name: &str) -> bool {
    fs::exists(format!("/run/netns/{name}")).expect("a directory of namespaces")
}

#[test]
fn nothing_is_left_behind() {
    let _alone = alone();
    let lab = lab();
    let names = [lab.net.name().to_owned(), lab.host.name().to_owned()];
    assert!(names.iter().all(|name| exists(name)));
    drop(lab);
    assert!(!names.iter().any(|name| exists(name)));
}

#[test]
fn what_a_dead_process_left_is_removed_and_nothing_else() {
    let _alone = alone();
    let mut child = Command::new("true").spawn().expect("a process");
    let dead = child.id();
    child.wait().expect("its end");
    let leftover = format!("limiter-labtest-{dead}-0-host");
    let foreign = format!("labtest-{dead}");
    let mine = Namespace::create("labtest", "host").expect("a namespace");
    for name in [&leftover, &foreign] {
        assert!(
            Command::new("ip")
                .args(["netns", "add", name])
                .status()
                .expect("ip")
                .success()
        );
    }
    let removed = remove_leftovers();
    let foreign_is_there = exists(&foreign);
    assert!(
        Command::new("ip")
            .args(["netns", "delete", &foreign])
            .status()
            .expect("ip")
            .success()
    );
    assert!(removed.expect("removed").contains(&leftover));
    assert!(!exists(&leftover));
    assert!(foreign_is_there && exists(mine.name()));
}

#[test]
fn a_child_process_runs_inside() {
    let _alone = alone();
    let lab = lab();
    let output = lab
        .host
        .command("ip")
        .args(["-o", "link"])
        .output()
        .expect("ip");
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(
        printed.contains(HOST_INTERFACE) && !printed.contains(NET_INTERFACE),
        "{printed}"
    );
}

#[test]
fn errors_name_what_failed() {
    let _alone = alone();
    let namespace = Namespace::create("labtest", "host").expect("a namespace");
    let error = set_offload(&namespace, "nowhere0", Offload::Gro, true).unwrap_err();
    assert!(format!("{error:#}").contains("nowhere0"), "{error:#}");
    let error = Tap::open(&namespace, "nowhere0").unwrap_err();
    assert!(format!("{error:#}").contains("nowhere0"), "{error:#}");
    let error = namespace
        .sysctl("net/ipv4/no_such_setting", "1")
        .unwrap_err();
    assert!(
        format!("{error:#}").contains("no_such_setting"),
        "{error:#}"
    );
}

#[test]
fn a_new_cable_is_quiet() {
    let _alone = alone();
    let lab = lab();
    let before = (
        lab.host_counters().expect("counters"),
        lab.net_counters().expect("counters"),
    );
    assert!(Stop::new().sleep(Duration::from_secs(3)));
    assert_eq!(
        (
            lab.host_counters().expect("counters"),
            lab.net_counters().expect("counters")
        ),
        before
    );
}

#[test]
fn a_cable_is_as_asked_for() {
    let _alone = alone();
    let lab = Lab::with_cable(
        "labtest",
        Cable {
            mtu: 9000,
            queues: 3,
            static_neighbours: true,
        },
    )
    .expect("a lab");
    let output = lab
        .net
        .command("ip")
        .args(["-o", "-d", "link", "show", NET_INTERFACE])
        .output()
        .expect("ip");
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(
        printed.contains("mtu 9000") && printed.contains("numrxqueues 3"),
        "{printed}"
    );
    for offload in [
        Offload::Gro,
        Offload::Tso,
        Offload::Gso,
        Offload::TxChecksum,
    ] {
        set_offload(&lab.net, NET_INTERFACE, offload, false).expect("switched off");
        set_offload(&lab.net, NET_INTERFACE, offload, true).expect("switched on");
    }
    let before = lab.host_counters().expect("counters");
    let ping = Polite::new(HOST_V4.into(), Manner::Ping, Duration::from_millis(50));
    let answers = ping
        .start(&lab, &Stop::new())
        .expect("a client")
        .join()
        .expect("a client");
    assert_eq!((answers.sent, answers.lost()), (1, 0));
    assert_eq!(
        lab.host_counters().expect("counters").received - before.received,
        1,
        "no ARP"
    );
}

#[test]
fn many_addresses_are_added_at_once() {
    let _alone = alone();
    let lab = lab();
    lab.route_to_net().expect("routes");
    let addresses: Vec<IpAddr> = (0..2_000_u32)
        .map(|n| IpAddr::from((0x0a00_0001 + n).to_be_bytes()))
        .collect();
    let start = Instant::now();
    lab.add_net_addresses(&addresses).expect("added");
    println!("{} addresses in {:?}", addresses.len(), start.elapsed());
    let socket = lab
        .net
        .run(|| Ok(std::net::UdpSocket::bind((addresses[1_999], 0))?))
        .expect("the last of them");
    socket.send_to(b"x", (HOST_V4, 9)).expect("sent");
    let again = lab
        .add_net_addresses(&[NET_V4.into(), addresses[0]])
        .unwrap_err();
    assert!(format!("{again:#}").contains("address add"), "{again:#}");
}
