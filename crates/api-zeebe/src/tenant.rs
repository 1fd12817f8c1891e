//! Whose jobs: with multi-tenancy switched off there is one tenant, and no other may be named.

use tonic::Status;

use crate::protocol::TenantFilter;
use crate::queue::TENANT_DEFAULT;

/// The tenant that a request names; an empty name is the default.
pub(crate) fn one(rpc: &str, given: &str) -> Result<&'static str, Status> {
    if given.is_empty() || given == TENANT_DEFAULT {
        return Ok(TENANT_DEFAULT);
    }
    Err(refused(rpc, given))
}

/// The tenant whose jobs a worker asks for.
pub(crate) fn of_worker(
    rpc: &str,
    given: &[String],
    filter: TenantFilter,
) -> Result<&'static str, Status> {
    match filter {
        TenantFilter::Assigned => Ok(TENANT_DEFAULT),
        TenantFilter::Provided => {
            match given.iter().find(|given| !given.is_empty() && *given != TENANT_DEFAULT) {
                None => Ok(TENANT_DEFAULT),
                Some(other) => Err(refused(rpc, other)),
            }
        }
    }
}

fn refused(rpc: &str, given: &str) -> Status {
    Status::invalid_argument(format!(
        "Expected to handle gRPC request {rpc} with tenant identifier '{given}', but multi-tenancy \
         is disabled"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_default_may_be_named() {
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (given, filter, allowed) in [
            (names(&[]), TenantFilter::Provided, true),
            (names(&[""]), TenantFilter::Provided, true),
            (names(&["<default>"]), TenantFilter::Provided, true),
            (names(&["<default>", "a"]), TenantFilter::Provided, false),
            (names(&["a"]), TenantFilter::Provided, false),
            (names(&["a"]), TenantFilter::Assigned, true),
        ] {
            assert_eq!(of_worker("ActivateJobs", &given, filter).is_ok(), allowed, "{given:?}");
        }
        assert!(one("DeployResource", "").is_ok());
        assert!(one("DeployResource", "a").is_err());
    }
}
