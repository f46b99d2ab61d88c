//! Numbers that name protocols, each kind a type of its own: an EtherType cannot be compared with an IP protocol.

/// The EtherType field of an Ethernet frame or tag; below 0x0600 it is a length (IEEE 802.3 section 3.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4 (RFC 894).
    pub const IPV4: Self = Self(0x0800);
    /// ARP (RFC 826).
    pub const ARP: Self = Self(0x0806);
    /// Customer VLAN tag (IEEE 802.1Q).
    pub const VLAN: Self = Self(0x8100);
    /// IPv6 (RFC 2464).
    pub const IPV6: Self = Self(0x86dd);
    /// Slow protocols, LACP among them (IEEE 802.3 annex 57A).
    pub const SLOW: Self = Self(0x8809);
    /// PPPoE discovery stage (RFC 2516).
    pub const PPPOE_DISCOVERY: Self = Self(0x8863);
    /// PPPoE session stage (RFC 2516).
    pub const PPPOE_SESSION: Self = Self(0x8864);
    /// Port-based access control (IEEE 802.1X).
    pub const EAPOL: Self = Self(0x888e);
    /// Service VLAN tag (IEEE 802.1ad).
    pub const SERVICE_VLAN: Self = Self(0x88a8);
    /// Link-layer discovery (IEEE 802.1AB).
    pub const LLDP: Self = Self(0x88cc);
    /// MACsec (IEEE 802.1AE).
    pub const MACSEC: Self = Self(0x88e5);
    /// Precision time (IEEE 1588 annex F).
    pub const PTP: Self = Self(0x88f7);

    /// Whether a VLAN tag follows. Linux strips these two and no other (`eth_type_vlan`, 6.12).
    #[inline(always)]
    #[must_use]
    pub const fn is_tag(self) -> bool {
        self.0 == Self::VLAN.0 || self.0 == Self::SERVICE_VLAN.0
    }

    /// Whether the field is the length of an 802.3 frame.
    #[inline(always)]
    #[must_use]
    pub const fn is_length(self) -> bool {
        self.0 < 0x0600
    }
}

/// The protocol field of IPv4, or the next-header field of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpProtocol(pub u8);

impl IpProtocol {
    /// IPv6 hop-by-hop options (RFC 8200 section 4.3).
    pub const HOP_BY_HOP: Self = Self(0);
    /// ICMP for IPv4 (RFC 792).
    pub const ICMP: Self = Self(1);
    /// TCP (RFC 9293).
    pub const TCP: Self = Self(6);
    /// UDP (RFC 768).
    pub const UDP: Self = Self(17);
    /// DCCP (RFC 4340).
    pub const DCCP: Self = Self(33);
    /// IPv6 routing header (RFC 8200 section 4.4).
    pub const ROUTING: Self = Self(43);
    /// IPv6 fragment header (RFC 8200 section 4.5).
    pub const FRAGMENT: Self = Self(44);
    /// Authentication header, whose length counts 4-byte units (RFC 4302 section 2.2).
    pub const AUTHENTICATION: Self = Self(51);
    /// ICMP for IPv6 (RFC 4443).
    pub const ICMPV6: Self = Self(58);
    /// IPv6 destination options (RFC 8200 section 4.6).
    pub const DESTINATION: Self = Self(60);
    /// VRRP (RFC 9568).
    pub const VRRP: Self = Self(112);
    /// SCTP (RFC 9260).
    pub const SCTP: Self = Self(132);
    /// IPv6 mobility header (RFC 6275 section 6.1).
    pub const MOBILITY: Self = Self(135);
    /// UDP-Lite (RFC 3828).
    pub const UDP_LITE: Self = Self(136);
    /// Host identity protocol (RFC 7401).
    pub const HIP: Self = Self(139);
    /// Shim6 (RFC 5533).
    pub const SHIM6: Self = Self(140);

    /// Whether this is an IPv6 extension header that can be stepped over (IANA registry of extension header types,
    /// without ESP, behind which all is encrypted).
    #[inline(always)]
    #[must_use]
    pub const fn is_extension(self) -> bool {
        matches!(
            self,
            Self::HOP_BY_HOP
                | Self::ROUTING
                | Self::FRAGMENT
                | Self::AUTHENTICATION
                | Self::DESTINATION
                | Self::MOBILITY
                | Self::HIP
                | Self::SHIM6
        )
    }
}
