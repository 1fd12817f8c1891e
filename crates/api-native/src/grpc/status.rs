//! Errors as gRPC says them: a status, and the stable code in the trailer `windlass-code`.

use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use crate::error::{ApiError, ErrorKind};
use crate::v1::Refusal;

/// The trailer with the stable code.
const CODE: &str = "windlass-code";
/// The trailer with the key of the job that holds the unique key.
const HOLDER: &str = "windlass-holder";

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
        Status::with_metadata(code_of(error.kind), error.message, trailers)
    }
}

/// The same inside an answer, for one item of many.
pub(crate) fn refusal(error: impl Into<ApiError>) -> Refusal {
    let error = error.into();
    Refusal {
        code: error.code.to_owned(),
        message: error.message.into_owned(),
        grpc_code: u32::try_from(i32::from(code_of(error.kind))).unwrap_or_default(),
        holder: error.holder.map_or(0, |holder| holder.raw()),
    }
}
