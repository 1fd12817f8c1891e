//! Which queues a request for jobs is about: those of one tenant, or the same ones of several.

use std::sync::Arc;

use windlass_gateway::Limits;
use windlass_record::bound::Bound;
use windlass_record::command::QueueName;
use windlass_record::rejection::Rejection;

use crate::error::ApiError;
use crate::limit::TENANT_DEFAULT;

/// Queues as they are named, of a tenant (empty: the default one), or of each of some.
pub(crate) fn queues(
    limits: &Limits,
    tenant: Box<str>,
    tenants: Vec<Box<str>>,
    names: Vec<Box<str>>,
) -> Result<Vec<QueueName>, ApiError> {
    let tenants = match (&*tenant, tenants.is_empty()) {
        ("", true) => vec![TENANT_DEFAULT.into()],
        (_, true) => vec![tenant],
        ("", false) => tenants,
        (_, false) => {
            let message = "a request for jobs names a tenant or tenants, not both";
            return Err(ApiError::invalid("tenant-and-tenants", message));
        }
    };
    // Before there are that many.
    let (count, max) = (tenants.len().saturating_mul(names.len()), limits.batch_items_max);
    if count > max {
        let wide = |count| u64::try_from(count).unwrap_or(u64::MAX);
        let (bound, max, given) = (Bound::BatchItems, wide(max), wide(count));
        return Err(Rejection::TooLarge { bound, max, given }.into());
    }
    let names: Vec<Arc<str>> = names.into_iter().map(Arc::from).collect();
    let of = |tenant: Box<str>| {
        let tenant: Arc<str> = tenant.into();
        let named = |queue: &Arc<str>| QueueName { tenant: tenant.clone(), queue: queue.clone() };
        names.iter().map(named).collect::<Vec<_>>()
    };
    Ok(tenants.into_iter().flat_map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(tenant: &str, tenants: &[&str], names: &[&str]) -> String {
        let boxed = |texts: &[&str]| texts.iter().map(|&text| Box::from(text)).collect();
        let limits = Limits { batch_items_max: 4, ..Limits::default() };
        match queues(&limits, tenant.into(), boxed(tenants), boxed(names)) {
            Ok(all) => {
                let all = all.iter().map(|name| format!("{}/{}", name.tenant, name.queue));
                all.collect::<Vec<_>>().join(" ")
            }
            Err(error) => error.code.to_owned(),
        }
    }

    #[test]
    fn one_tenant_or_some() {
        assert_eq!(said("", &[], &["q"]), "default/q");
        assert_eq!(said("a", &[], &["q", "r"]), "a/q a/r");
        assert_eq!(said("", &["a", "b"], &["q", "r"]), "a/q a/r b/q b/r");
        assert_eq!(said("a", &["b"], &["q"]), "tenant-and-tenants");
        assert_eq!(said("", &["a", "b", "c"], &["q", "r"]), "too-large");
    }
}
