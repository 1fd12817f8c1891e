//! Where requests may go.
//!
//! A task names its destination, and a name can mean any address. What answers on a link-local one
//! gives credentials of the machine to whoever asks, so nobody is asked there.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// What is denied if nothing is said: addresses of the link, where clouds keep their metadata, and
/// the one of them that lies elsewhere.
pub const DENIED_DEFAULT: &[&str] = &["169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128"];

/// Addresses with the same first bits, written `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

/// A destination may not be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("requests to {address} are denied, as {network} is")]
pub struct Denied {
    /// What was going to be connected to.
    pub address: IpAddr,
    /// What it lies in.
    pub network: Network,
}

/// What is denied by default.
#[must_use]
pub fn denied_default() -> Vec<Network> {
    DENIED_DEFAULT.iter().filter_map(|network| network.parse().ok()).collect()
}

/// Refuses an address in one of these networks.
pub(super) fn check(address: SocketAddr, denied: &[Network]) -> Result<(), Denied> {
    // An address of the older kind may be dressed as one of the newer kind.
    let address = address.ip().to_canonical();
    match denied.iter().find(|network| network.contains(address)) {
        Some(network) => Err(Denied { address, network: *network }),
        None => Ok(()),
    }
}

impl Network {
    fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let ignored = 32 - self.bits;
                let differs = network.to_bits() ^ address.to_bits();
                differs.checked_shr(ignored).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let ignored = 128 - self.bits;
                let differs = network.to_bits() ^ address.to_bits();
                differs.checked_shr(ignored).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Network {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Network, &'static str> {
        const EXPECTED: &str = "expected a network such as 10.0.0.0/8, or an address";
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.trim().parse().map_err(|_| EXPECTED)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.trim().parse()).map_err(|_| EXPECTED)?;
        if bits > most { Err(EXPECTED) } else { Ok(Network { address, bits }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_what_begins_like_it() {
        for (network, address, holds) in [
            ("169.254.0.0/16", "169.254.169.254", true),
            ("169.254.0.0/16", "169.253.0.1", false),
            ("169.254.0.0/16", "::ffff:169.254.169.254", true),
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "::1", false),
            ("fe80::/10", "febf::1", true),
            ("fe80::/10", "fec0::1", false),
            ("fd00:ec2::254", "fd00:ec2::254", true),
            ("::/0", "::1", true),
        ] {
            let network: Network = network.parse().unwrap();
            let address = SocketAddr::new(address.parse().unwrap(), 80);
            assert_eq!(check(address, &[network]).is_err(), holds, "{network} {address}");
        }
        for wrong in ["", "x", "10.0.0.0/33", "10.0.0.0/-1", "::/129", "10.0.0/8"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
        assert_eq!(denied_default().len(), DENIED_DEFAULT.len());
    }
}
