//! The table of packets: what each of them is, and what must become of it.

pub mod dhcp;
pub mod fragments;
pub mod ipv4;
pub mod ipv6;
pub mod large;
pub mod needs;
pub mod non_ip;
pub mod sources;
pub mod tags;
pub mod truncation;

use std::net::{Ipv4Addr, Ipv6Addr};

use limiter_common::{
    counters::{Odd, Reason},
    needs::Need,
};
use limiter_lab::frame::Frame;

/// The protected host.
pub const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The protected host.
pub const HOST6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x99, 0, 0, 0, 0, 1);
/// Who sends most of the table.
pub const ATTACKER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
/// Who sends most of the table.
pub const ATTACKER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 1);

/// The source that [`ATTACKER`] belongs to.
const KEY: &str = "198.51.100.7";
/// The source that [`ATTACKER6`] belongs to.
const KEY6: &str = "2001:db8:a::/64";

/// What must become of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It costs this source a token.
    Charged(&'static str),
    /// It costs this source a token, and is dropped for being malformed all the same.
    ChargedMalformed(&'static str),
    /// It is dropped whatever the buckets say, and nobody is charged.
    Dropped(Reason),
    /// It passes as one of the host's own needs, and nobody is charged.
    Need(Need),
    /// It passes, and nobody is charged.
    Passed,
}

/// A packet of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// The frame.
    pub bytes: Vec<u8>,
    /// What must become of it.
    pub outcome: Outcome,
    /// What is counted besides.
    pub odd: Vec<Odd>,
}

impl Row {
    fn new(name: impl Into<String>, bytes: Vec<u8>, outcome: Outcome) -> Self {
        Self {
            name: name.into(),
            bytes,
            outcome,
            odd: Vec::new(),
        }
    }

    fn odd(mut self, odd: Odd) -> Self {
        self.odd.push(odd);
        self
    }
}

/// Hands all tables, each with the name of its test, to the macro of that name.
#[macro_export]
macro_rules! every_table {
    ($then:ident) => {
        $then! {
            case_1_tags_hide_nobody: tags::hide_nobody,
            case_1_tags_hide_nothing_else_either: tags::hide_nothing_else_either,
            a_third_tag_is_refused: tags::third_is_refused,
            case_4_every_protocol_is_charged: ipv4::every_protocol_is_charged,
            case_11_options_do_not_move_the_ports: ipv4::options_do_not_move_the_ports,
            ipv4_headers_that_contradict_themselves: ipv4::contradictions,
            ipv4_total_length_bounds_the_packet: ipv4::total_length_bounds_the_packet,
            ipv4_flags_that_make_no_fragment: ipv4::flags_that_make_no_fragment,
            case_5_extension_headers_hide_nothing: ipv6::extensions_hide_nothing,
            case_5_authentication_header_has_its_own_unit: ipv6::authentication_has_its_own_unit,
            case_5_chains_are_walked_in_any_order: ipv6::any_order,
            case_7_an_extension_of_2048_bytes: ipv6::longest_extension,
            case_8_a_chain_longer_than_the_bound: ipv6::chain_longer_than_the_bound,
            case_10_an_extension_past_the_end: ipv6::extension_past_the_end,
            ipv6_headers_that_contradict_themselves: ipv6::contradictions,
            ipv6_payload_length_bounds_the_packet: ipv6::payload_length_bounds_the_packet,
            ipv6_jumbo_payloads: ipv6::jumbo_payloads,
            ipv6_protocols_without_ports: ipv6::protocols_without_ports,
            case_13_fragments_are_charged_alike: fragments::charged_alike,
            case_13_later_payloads_are_no_ports: fragments::later_payloads_are_no_ports,
            case_14_a_short_last_fragment_is_whole: fragments::short_last_one_is_whole,
            case_16_ipv6_fragments: fragments::ipv6,
            case_16_atomic_fragments_are_whole: fragments::atomic,
            case_18_first_fragments_cut_short: fragments::first_cut_short,
            fragments_serve_no_need: fragments::serve_no_need,
            case_19_ipv4_tcp_cut_anywhere: truncation::ipv4_tcp,
            case_19_ipv4_options_udp_cut_anywhere: truncation::ipv4_options_udp,
            case_19_ipv4_icmp_cut_anywhere: truncation::ipv4_icmp,
            case_19_tagged_ipv6_hop_by_hop_udp_cut_anywhere: truncation::tagged_ipv6_hop_by_hop_udp,
            case_19_ipv6_authentication_icmpv6_cut_anywhere: truncation::ipv6_authentication_icmpv6,
            case_19_ipv6_sctp_cut_anywhere: truncation::ipv6_sctp,
            case_19_first_fragments_cut_anywhere: truncation::first_fragments,
            case_19_later_fragments_cut_anywhere: truncation::later_fragments,
            case_19_arp_cut_anywhere: truncation::arp,
            case_19_zeros_of_any_length: truncation::zeros,
            case_21_frames_of_several_buffers: large::frames,
            case_21_headers_beyond_the_first_buffer: large::headers_beyond_the_first_buffer,
            case_24_arp: needs::arp,
            case_25_neighbour_discovery: needs::neighbour_discovery,
            case_25_duplicate_address_detection: needs::duplicate_address_detection,
            case_26_look_alikes_of_neighbour_discovery: needs::look_alikes_of_neighbour_discovery,
            case_28_vrrp: needs::vrrp,
            case_32_path_mtu: needs::path_mtu,
            needs_dhcp: dhcp::ipv4,
            needs_dhcpv6: dhcp::ipv6,
            needs_of_the_link: needs::of_the_link,
            case_30_pppoe_passes_unparsed: non_ip::pppoe,
            other_ether_types_pass: non_ip::other_ether_types,
            case_34_byte_order_of_the_key: sources::byte_order,
            case_35_one_key_by_any_path: sources::one_key_by_any_path,
            case_36_who_shares_a_bucket: sources::who_shares,
            case_38_mapped_sources_are_impossible: sources::mapped,
            case_41_impossible_sources: sources::impossible,
            case_41_sources_at_the_edge_of_the_possible: sources::edge_of_the_possible,
        }
    };
}

/// All tables in one.
#[must_use]
pub fn all() -> Vec<Row> {
    macro_rules! concatenated {
        ($($test:ident: $module:ident::$table:ident,)*) => {
            [$($module::$table()),*].concat()
        };
    }
    every_table!(concatenated)
}

/// An IPv4 packet from the attacker to the host.
fn v4() -> Frame {
    Frame::ipv4(ATTACKER, HOST)
}

/// An IPv6 packet from the attacker to the host.
fn v6() -> Frame {
    Frame::ipv6(ATTACKER6, HOST6)
}

const IPV4: u16 = 0x0800;
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// A UDP header that says DHCP. Whether ports were read shows in what is granted to it: everything else is charged.
const DHCP: [u8; 8] = [0, 68, 0, 67, 0, 8, 0, 0];
/// The same in IPv6.
const DHCPV6: [u8; 8] = [0x02, 0x22, 0x02, 0x23, 0, 8, 0, 0];

/// `bytes` with other bytes at `at`.
fn patched(mut bytes: Vec<u8>, at: usize, with: &[u8]) -> Vec<u8> {
    bytes[at..at + with.len()].copy_from_slice(with);
    bytes
}

/// The first `length` bytes.
fn cut(mut bytes: Vec<u8>, length: usize) -> Vec<u8> {
    assert!(length < bytes.len(), "nothing is cut off");
    bytes.truncate(length);
    bytes
}

/// `bytes` with tags of these types inserted in front of its `EtherType`, the outermost first.
fn with_tags(bytes: &[u8], types: &[u16]) -> Vec<u8> {
    let mut tagged = bytes[..12].to_vec();
    for ether_type in types {
        tagged.extend(ether_type.to_be_bytes());
        tagged.extend([0x00, 0x64]);
    }
    tagged.extend(&bytes[12..]);
    tagged
}
