//! Frames that nobody would think of.

use fastrand::Rng;

/// Bytes that mean something somewhere: lengths, versions, protocols, extremes.
const TELLING: [u8; 22] = [
    0x00, 0x01, 0x06, 0x08, 0x11, 0x2b, 0x2c, 0x33, 0x3a, 0x3b, 0x3c, 0x40, 0x44, 0x45, 0x4f, 0x60,
    0x70, 0x81, 0x86, 0x88, 0xfe, 0xff,
];
/// Where headers are.
const HEADERS: usize = 120;
/// The longest frame that is made.
const LONGEST: usize = 9_000;

/// A frame of the corpus with some of its bytes changed, or once in a while nothing but noise.
pub fn frame(random: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    if random.u8(..) < 8 {
        return noise(random);
    }
    let mut bytes = corpus[random.usize(..corpus.len())].clone();
    for _ in 0..random.usize(..4) {
        mutate(random, &mut bytes, corpus);
    }
    bytes.resize(bytes.len().clamp(14, LONGEST), 0);
    bytes
}

fn noise(random: &mut Rng) -> Vec<u8> {
    let length = random.usize(14..200);
    let mut bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
    let types = [[0x08, 0x00], [0x86, 0xdd], [0x81, 0x00], [0x88, 0xa8]];
    if random.bool() {
        bytes[12..14].copy_from_slice(&types[random.usize(..types.len())]);
    }
    bytes
}

fn mutate(random: &mut Rng, bytes: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    if bytes.len() < 14 {
        return;
    }
    let at = random.usize(..bytes.len().min(HEADERS));
    match random.u8(..10) {
        0 => bytes[at] ^= 1 << random.u8(..8),
        1 => bytes[at] = random.u8(..),
        2..=4 => bytes[at] = TELLING[random.usize(..TELLING.len())],
        5 => bytes.truncate(random.usize(14..=bytes.len())),
        6 => bytes.extend((0..random.usize(..64)).map(|_| 0)),
        7 => {
            let tag = [0x81, 0x00, 0x00, random.u8(..)];
            bytes.splice(12..12, tag);
        }
        8 => {
            let from = random.usize(..=at);
            let copied = bytes[from..at].to_vec();
            bytes.splice(at..at, copied);
        }
        _ => {
            let other = &corpus[random.usize(..corpus.len())];
            let tail = other.get(at..).unwrap_or_default();
            bytes.truncate(at);
            bytes.extend_from_slice(tail);
        }
    }
}
