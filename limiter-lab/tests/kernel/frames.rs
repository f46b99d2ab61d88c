//! Built frames: the kernel is the judge of whether they are valid.

use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

use limiter_lab::{
    ECHO_PORT, EchoServer, HOST_INTERFACE, HOST_MAC, HOST_V4, HOST_V6, Lab, NET_INTERFACE, NET_MAC,
    NET_V4, NET_V6, Tap, Wire,
    frame::{Extension, Frame, tcp_flags},
};

use crate::common::{ATTACKER, ATTACKER6, DISCARD, alone, lab};

const PATIENCE: Duration = Duration::from_secs(2);

fn listen(lab: &Lab, address: IpAddr) -> UdpSocket {
    let socket = lab
        .host
        .run(|| Ok(UdpSocket::bind((address, DISCARD))?))
        .expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket
}

/// What is sent as frames is received as a datagram, whole and from whom it says.
fn expect_datagram(
    socket: &UdpSocket,
    wire: &Wire,
    frames: &[Vec<u8>],
    from: IpAddr,
    payload: &[u8],
) {
    wire.send_all(frames).expect("sent");
    let mut buffer = vec![0; 1 << 16];
    let (length, client) = socket.recv_from(&mut buffer).expect("a datagram");
    assert_eq!(
        (client, &buffer[..length]),
        (SocketAddr::new(from, 1234), payload)
    );
}

#[test]
fn datagrams_reach_a_socket() {
    let _alone = alone();
    let lab = lab();
    lab.route_to_net().expect("routes");
    let wire = Wire::open(&lab.net, NET_INTERFACE).expect("a wire");
    let payload: Vec<u8> = (0..=255).cycle().take(3_001).collect();

    let socket = listen(&lab, HOST_V4.into());
    let frame = Frame::ipv4(ATTACKER, HOST_V4)
        .udp(1234, DISCARD)
        .payload_bytes(&payload[..101]);
    for frame in [
        frame.clone(),
        frame.clone().options(1),
        frame.clone().options(10),
        frame.padded_to(400),
    ] {
        expect_datagram(
            &socket,
            &wire,
            &[frame.build()],
            ATTACKER.into(),
            &payload[..101],
        );
    }
    let large = Frame::ipv4(ATTACKER, HOST_V4)
        .udp(1234, DISCARD)
        .payload_bytes(&payload);
    expect_datagram(
        &socket,
        &wire,
        &large.fragments(1_480),
        ATTACKER.into(),
        &payload,
    );

    let socket = listen(&lab, HOST_V6.into());
    let frame = Frame::ipv6(ATTACKER6, HOST_V6);
    let chains = [
        frame.clone(),
        frame.clone().extension(Extension::hop_by_hop()),
        frame
            .clone()
            .extension(Extension::destination())
            .extension(Extension::destination()),
        frame.clone().extension(Extension::routing()),
        frame.clone().extension(Extension::generic(60, 256)),
        frame.clone().fragment(0, false),
    ];
    for frame in chains {
        let bytes = frame
            .udp(1234, DISCARD)
            .payload_bytes(&payload[..101])
            .build();
        expect_datagram(&socket, &wire, &[bytes], ATTACKER6.into(), &payload[..101]);
    }
    let large = frame.udp(1234, DISCARD).payload_bytes(&payload);
    expect_datagram(
        &socket,
        &wire,
        &large.fragments(1_400),
        ATTACKER6.into(),
        &payload,
    );
}

/// A frame and how the host's answer to it begins behind the Ethernet addresses, at some offset.
struct Question {
    frame: Frame,
    offset: usize,
    answer: Vec<u8>,
}

#[test]
fn the_host_answers() {
    let _alone = alone();
    let lab = lab();
    let _server = EchoServer::start(&lab).expect("a server");
    let wire = Wire::open(&lab.net, NET_INTERFACE).expect("a wire");
    let mut tap = Tap::open(&lab.net, NET_INTERFACE).expect("a tap");
    let syn_ack = tcp_flags::SYN | tcp_flags::ACK;
    let questions = [
        Question {
            frame: Frame::arp_request(NET_V4, HOST_V4),
            offset: 20,
            answer: [&[0, 2], &HOST_MAC.0[..], &HOST_V4.octets()].concat(),
        },
        Question {
            frame: Frame::neighbour_solicitation(NET_V6, HOST_V6),
            offset: 22,
            answer: [HOST_V6.octets(), NET_V6.octets()]
                .concat()
                .into_iter()
                .chain([136, 0])
                .collect(),
        },
        Question {
            frame: Frame::ipv4(NET_V4, HOST_V4).echo_request(5, 6).payload(100),
            offset: 34,
            answer: vec![0, 0],
        },
        Question {
            frame: Frame::ipv6(NET_V6, HOST_V6).echo_request(5, 6).payload(100),
            offset: 54,
            answer: vec![129, 0],
        },
        Question {
            frame: Frame::ipv4(NET_V4, HOST_V4).tcp(999, ECHO_PORT, tcp_flags::SYN),
            offset: 34,
            answer: [ECHO_PORT.to_be_bytes(), 999_u16.to_be_bytes()].concat(),
        },
        Question {
            frame: Frame::ipv4(NET_V4, HOST_V4).tcp(998, ECHO_PORT, tcp_flags::SYN),
            offset: 47,
            answer: vec![syn_ack],
        },
        Question {
            frame: Frame::ipv6(NET_V6, HOST_V6).tcp(998, ECHO_PORT, tcp_flags::SYN),
            offset: 67,
            answer: vec![syn_ack],
        },
    ];
    for Question {
        frame,
        offset,
        answer,
    } in questions
    {
        wire.send(&frame.build()).expect("sent");
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let heard = tap.next(PATIENCE).expect("a tap").unwrap_or_default();
            let ours = heard.starts_with(&[NET_MAC.0, HOST_MAC.0].concat());
            if ours && heard.get(offset..offset + answer.len()) == Some(&answer[..]) {
                break;
            }
        }
        assert!(start.elapsed() < PATIENCE, "no answer to {frame:?}");
    }
}

#[test]
fn a_tag_is_taken_off_by_the_receiver() {
    let _alone = alone();
    let lab = lab();
    let wire = Wire::open(&lab.net, NET_INTERFACE).expect("a wire");
    let mut tap = Tap::open(&lab.host, HOST_INTERFACE).expect("a tap");
    let frame = Frame::ipv4(ATTACKER, HOST_V4).udp(1, 2);
    wire.send(&frame.clone().tagged(&[100, 200]).build())
        .expect("sent");
    assert_eq!(
        tap.next(PATIENCE).expect("a tap"),
        Some(frame.tagged(&[200]).build())
    );
}
