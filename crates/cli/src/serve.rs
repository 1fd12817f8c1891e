//! `windlass serve`: the engine itself.

use windlass_server::{ServeArgs, ServeError};

use crate::failure::Failure;

pub(crate) fn run(args: ServeArgs) -> Result<(), Failure> {
    let config = args.config().map_err(|error| Failure::caused(&error))?;
    let listen = config.listen;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("start the runtime", error))?;
    let ended = runtime.block_on(windlass_server::serve(config));
    ended.map_err(|error: ServeError| {
        let failure = Failure::caused(&error);
        let in_use = is_caused_by_address_in_use(&error);
        if in_use {
            failure.hint(format!(
                "something listens on {listen} already: `windlass status --server http://{listen}` \
                 tells whether it is a server of ours; --listen takes another address"
            ))
        } else {
            failure
        }
    })
}

fn is_caused_by_address_in_use(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::AddrInUse) {
            return true;
        }
        cause = error.source();
    }
    false
}
