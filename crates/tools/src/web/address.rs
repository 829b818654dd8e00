//! What sort of network an IP address belongs to.
//!
//! The tables follow the IANA registries of special-purpose addresses. An IPv6 address that only wraps an IPv4 address
//! is what that address is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Anybody's.
    Public,
    /// This machine's, this network's, or nobody's; says which.
    Private(&'static str),
    /// Where clouds tell machines their keys.
    Metadata,
}

/// A block of addresses: its first, the number of bits that count, and what it is.
type Block4 = (Ipv4Addr, u32, &'static str);
type Block6 = (Ipv6Addr, u32, &'static str);

const BLOCKS_4: &[Block4] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8, "an address of this machine"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "a private address"),
    (
        Ipv4Addr::new(100, 64, 0, 0),
        10,
        "an address behind a provider's NAT",
    ),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "a loopback address"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "a private address"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "a reserved address"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "a documentation address"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a relay address"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "a private address"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "a benchmarking address"),
    (
        Ipv4Addr::new(198, 51, 100, 0),
        24,
        "a documentation address",
    ),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "a documentation address"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "a multicast address"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "a reserved address"),
];

/// Exceptions inside 2000::/3, the only block that is given out.
const BLOCKS_6: &[Block6] = &[
    (
        Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0),
        23,
        "a reserved address",
    ),
    (
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0),
        32,
        "a documentation address",
    ),
    (
        Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0),
        20,
        "a documentation address",
    ),
];

/// Everything link-local counts, since that is where clouds have their services for machines; the others are outside it.
const METADATA_4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(100, 100, 100, 200), 32), // Alibaba
    (Ipv4Addr::new(168, 63, 129, 16), 32),   // Azure
    (Ipv4Addr::new(192, 0, 0, 192), 32),     // Oracle
];

const METADATA_6: &[Ipv6Addr] = &[
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), // Amazon
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),  // Google
];

pub(super) fn sort(address: IpAddr) -> Sort {
    match address {
        IpAddr::V4(address) => sort_4(address),
        IpAddr::V6(address) => sort_6(address),
    }
}

fn sort_4(address: Ipv4Addr) -> Sort {
    let bits = address.to_bits();
    let is_in = |block: Ipv4Addr, length: u32| (bits ^ block.to_bits()) >> (32 - length) == 0;
    if METADATA_4
        .iter()
        .any(|(block, length)| is_in(*block, *length))
    {
        return Sort::Metadata;
    }
    let block = BLOCKS_4
        .iter()
        .find(|(block, length, _)| is_in(*block, *length));
    block.map_or(Sort::Public, |(_, _, what)| Sort::Private(what))
}

fn sort_6(address: Ipv6Addr) -> Sort {
    if METADATA_6.contains(&address) {
        return Sort::Metadata;
    }
    match wrapped(address) {
        Some(Wrapped::Routed(inner)) => sort_4(inner),
        // Nobody routes these; whoever writes one means the address inside.
        Some(Wrapped::Obsolete(inner)) => match sort_4(inner) {
            Sort::Public => Sort::Private("an obsolete form of an IPv4 address"),
            sort => sort,
        },
        None => sort_native(address),
    }
}

fn sort_native(address: Ipv6Addr) -> Sort {
    let is_in =
        |block: Ipv6Addr, length: u32| (address.to_bits() ^ block.to_bits()) >> (128 - length) == 0;
    let given_out = Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0);
    if !is_in(given_out, 3) {
        return Sort::Private(outside(address));
    }
    let block = BLOCKS_6
        .iter()
        .find(|(block, length, _)| is_in(*block, *length));
    block.map_or(Sort::Public, |(_, _, what)| Sort::Private(what))
}

fn outside(address: Ipv6Addr) -> &'static str {
    if address.is_loopback() {
        "a loopback address"
    } else if address.is_unspecified() {
        "an address of this machine"
    } else if address.is_multicast() {
        "a multicast address"
    } else if address.is_unicast_link_local() {
        "a link-local address"
    } else if address.is_unique_local() {
        "a private address"
    } else {
        "a reserved address"
    }
}

enum Wrapped {
    /// Packets go to the IPv4 address.
    Routed(Ipv4Addr),
    Obsolete(Ipv4Addr),
}

/// Returns the IPv4 address that an IPv6 address stands for.
fn wrapped(address: Ipv6Addr) -> Option<Wrapped> {
    let last = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // The unspecified address and loopback are no IPv4 addresses.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        // Mapped.
        [0, 0, 0, 0, 0, 0xffff, high, low] => Some(Wrapped::Routed(last(high, low))),
        // Compatible, and translated as SIIT once did it.
        [0, 0, 0, 0, 0, 0, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            Some(Wrapped::Obsolete(last(high, low)))
        }
        // NAT64: how networks without IPv4 reach it.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(Wrapped::Routed(last(high, low))),
        // 6to4.
        [0x2002, high, low, ..] => Some(Wrapped::Obsolete(last(high, low))),
        // Teredo hides the client's address with all bits turned.
        [0x2001, 0, _, _, _, _, high, low] => Some(Wrapped::Obsolete(last(!high, !low))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(address: &str, expected: Sort) {
        let parsed: IpAddr = address.parse().unwrap();
        match (sort(parsed), expected) {
            (Sort::Private(_), Sort::Private("")) => {}
            (found, expected) => assert_eq!(found, expected, "{address}"),
        }
    }

    #[test]
    fn public_addresses_are_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450:4001:80b::200e",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ] {
            check(address, Sort::Public);
        }
    }

    #[test]
    fn addresses_of_machine_and_network_are_private() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.7",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::2",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::192.168.0.1",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:808:808::1",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            check(address, Sort::Private(""));
        }
    }

    #[test]
    fn metadata_services_are_known_in_every_form() {
        for address in [
            "169.254.169.254",
            "169.254.169.253",
            "169.254.170.2",
            "169.254.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::1",
            "2001:0:1:2:3:4:5601:5601",
            "fd00:ec2::254",
            "fd20:ce::254",
        ] {
            check(address, Sort::Metadata);
        }
    }

    proptest! {
        #[test]
        fn wrapping_never_makes_an_address_public(bits in any::<u32>()) {
            let inner = Ipv4Addr::from_bits(bits);
            let [a, b, c, d] = inner.octets().map(u16::from);
            let (high, low) = (a << 8 | b, c << 8 | d);
            let plain = sort(IpAddr::V4(inner));
            for segments in [
                [0, 0, 0, 0, 0, 0xffff, high, low],
                [0, 0, 0, 0, 0xffff, 0, high, low],
                [0x64, 0xff9b, 0, 0, 0, 0, high, low],
                [0x2002, high, low, 0, 0, 0, 0, 1],
            ] {
                let outer = sort(IpAddr::V6(Ipv6Addr::from(segments)));
                prop_assert!(outer != Sort::Public || plain == Sort::Public);
                prop_assert_eq!(outer == Sort::Metadata, plain == Sort::Metadata);
            }
        }

        #[test]
        fn what_std_calls_private_is_never_public(bits in any::<u32>()) {
            let address = Ipv4Addr::from_bits(bits);
            let is_special = address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_multicast()
                || address.is_broadcast()
                || address.is_documentation()
                || address.is_unspecified();
            prop_assert!(!is_special || sort(IpAddr::V4(address)) != Sort::Public);
        }
    }
}
