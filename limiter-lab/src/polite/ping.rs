//! ICMP echo on a raw socket.

use etherparse::{IcmpEchoHeader, Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type};

use super::channel::Mark;

/// One client's pings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ping {
    pub(super) identifier: u16,
    pub(super) ipv6: bool,
}

impl Ping {
    pub(super) fn request(self, mark: Mark) -> Vec<u8> {
        let content = mark.to_bytes();
        // The sequence number wraps; the content has all of it.
        let [.., high, low] = mark.number.to_be_bytes();
        let echo = IcmpEchoHeader {
            id: self.identifier,
            seq: u16::from_be_bytes([high, low]),
        };
        let mut bytes = if self.ipv6 {
            // The kernel fills in the checksum, which covers the addresses.
            Icmpv6Header::new(Icmpv6Type::EchoRequest(echo))
                .to_bytes()
                .to_vec()
        } else {
            Icmpv4Header::with_checksum(Icmpv4Type::EchoRequest(echo), &content)
                .to_bytes()
                .to_vec()
        };
        bytes.extend(content);
        bytes
    }

    /// The mark of an answer, if it is one to this client. An IPv4 raw socket hears it with its IP header.
    pub(super) fn answer(self, bytes: &[u8]) -> Option<Mark> {
        let (icmp, reply) = if self.ipv6 {
            (bytes, 129)
        } else {
            (bytes.get(usize::from(bytes.first()? & 0xf) * 4..)?, 0)
        };
        let (header, content) = icmp.split_at_checked(8)?;
        let ours = header[0] == reply && header[4..6] == self.identifier.to_be_bytes();
        if ours {
            Mark::from_bytes(content)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_to_this_client_count() {
        let mark = Mark {
            number: 70_000,
            sent_at: 9,
        };
        for ping in [
            Ping {
                identifier: 3,
                ipv6: false,
            },
            Ping {
                identifier: 3,
                ipv6: true,
            },
        ] {
            let mut answer = if ping.ipv6 {
                Vec::new()
            } else {
                [&[0x45], &[0; 19][..]].concat()
            };
            let start = answer.len();
            answer.extend(ping.request(mark));
            assert_eq!(ping.answer(&answer), None, "a request is no answer");
            answer[start] = if ping.ipv6 { 129 } else { 0 };
            assert_eq!(ping.answer(&answer), Some(mark));
            assert_eq!(
                Ping {
                    identifier: 4,
                    ..ping
                }
                .answer(&answer),
                None,
                "somebody else's"
            );
            assert_eq!(ping.answer(&answer[..20]), None, "cut short");
        }
    }
}
