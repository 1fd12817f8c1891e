//! The built-in workers, as a part of the server: they reach it over its own port, as others do.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use windlass_builtin::Handle;

use crate::settings::Config;

/// Starts them, if they are wanted. They connect by themselves.
pub(crate) fn start(config: &Config, address: SocketAddr) -> Option<Handle> {
    let endpoint = format!("http://{}", reachable(address));
    match windlass_builtin::run(config.builtin_settings()?, &endpoint) {
        Ok(handle) => Some(handle),
        Err(error) => {
            tracing::warn!(%error, "the built-in workers did not start");
            None
        }
    }
}

/// The sandbox that the built-in workers start: a whole program, to be called first thing.
pub fn sandbox() -> std::process::ExitCode {
    windlass_builtin::sandbox::serve()
}

/// Where this machine reaches an address that stands for all of its own.
pub(crate) fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    address
}
