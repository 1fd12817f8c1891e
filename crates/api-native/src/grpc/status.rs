//! Errors as gRPC says them: a status, and the stable code in the trailer `windlass-code`.

use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};
use windlass_record::bound::Bound;

use crate::error::{ApiError, ErrorKind};
use crate::v1::Refusal;

/// The trailer with the stable code.
const CODE: &str = "windlass-code";
/// The trailer with the key of the job that holds the unique key.
const HOLDER: &str = "windlass-holder";
/// The trailers with the limit that was met: its name, its value, and the setting that it follows.
const BOUND: &str = "windlass-bound";
const BOUND_MAX: &str = "windlass-bound-max";
const BOUND_SETTING: &str = "windlass-bound-setting";

fn code_of(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::AlreadyExists => Code::AlreadyExists,
        ErrorKind::FailedPrecondition | ErrorKind::VersionMismatch => Code::FailedPrecondition,
        ErrorKind::InvalidArgument | ErrorKind::PayloadTooLarge => Code::InvalidArgument,
        ErrorKind::ResourceExhausted | ErrorKind::Overloaded => Code::ResourceExhausted,
        ErrorKind::Unavailable => Code::Unavailable,
    }
}

impl From<ApiError> for Status {
    fn from(error: ApiError) -> Status {
        let mut trailers = MetadataMap::new();
        trailers.insert(CODE, MetadataValue::from_static(error.code));
        if let Some(holder) = error.holder {
            trailers.insert(HOLDER, MetadataValue::from(holder.raw()));
        }
        if let Some((bound, max)) = error.bound {
            trailers.insert(BOUND, MetadataValue::from_static(bound.name()));
            trailers.insert(BOUND_MAX, MetadataValue::from(max));
            if let Some(setting) = bound.setting() {
                trailers.insert(BOUND_SETTING, MetadataValue::from_static(setting));
            }
        }
        Status::with_metadata(code_of(error.kind), error.message, trailers)
    }
}

/// The same inside an answer, for one item of many.
pub(crate) fn refusal(error: impl Into<ApiError>) -> Refusal {
    let error = error.into();
    let (bound, bound_max) = error.bound.unzip();
    Refusal {
        code: error.code.to_owned(),
        message: error.message.into_owned(),
        grpc_code: u32::try_from(i32::from(code_of(error.kind))).unwrap_or_default(),
        holder: error.holder.map_or(0, |holder| holder.raw()),
        bound: bound.map(Bound::name).unwrap_or_default().to_owned(),
        bound_max: bound_max.unwrap_or_default(),
        bound_setting: bound.and_then(Bound::setting).unwrap_or_default().to_owned(),
    }
}
