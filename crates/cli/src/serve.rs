//! `windlass serve`: the engine itself.

use std::net::SocketAddr;

use windlass_server::{ServeArgs, ServeError};

use crate::failure::Failure;

pub(crate) fn run(args: ServeArgs) -> Result<(), Failure> {
    let config = args.config().map_err(|error| Failure::caused(&error))?;
    let main = config.listen;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("start the runtime", error))?;
    let ended = runtime.block_on(windlass_server::serve(config));
    ended.map_err(|error: ServeError| {
        let failure = Failure::caused(&error);
        match address_in_use(&error) {
            Some(listen) if listen == main => failure.hint(format!(
                "something listens on {listen} already: `windlass status --server http://{listen}` \
                 tells whether it is a server of ours; --listen takes another address"
            )),
            Some(listen) => failure.hint(format!(
                "something listens on {listen} already, perhaps a Zeebe gateway or another server \
                 of ours; --zeebe-listen takes another address, or off"
            )),
            None => failure,
        }
    })
}

/// The address that somebody else listens on.
fn address_in_use(error: &ServeError) -> Option<SocketAddr> {
    let ServeError::Listen { listen, source } = error else { return None };
    (source.kind() == std::io::ErrorKind::AddrInUse).then_some(*listen)
}
