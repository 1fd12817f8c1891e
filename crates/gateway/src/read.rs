//! Questions: each answered once all that the answer saw is durable.

use std::sync::Arc;

use tokio::sync::oneshot;
use windlass_partition::request::{
    DocumentView, JobFilter, JobView, LimitView, Query, QueryAnswer, QueueView, Request, Schedule,
    ScheduleFilter, SchedulePage, StatusView, Timetable, WhyView,
};
use windlass_record::command::QueueName;
use windlass_record::id::JobKey;
use windlass_record::rejection::Rejection;
use windlass_record::schedule::{ScheduleName, ScheduleRejection, ScheduleTimes};
use windlass_record::workflow::WorkflowQuery;

use crate::error::GatewayError;
use crate::gateway::Gateway;

/// Which document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DocumentName {
    /// The wall of security.
    pub tenant: Box<str>,
    /// Its kind.
    pub kind: Box<str>,
    /// Its id.
    pub id: Box<str>,
}

/// A page of ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentPage {
    /// Ids and versions in order.
    pub documents: Vec<(Box<str>, u64)>,
    /// Whether there are more.
    pub more: bool,
}

/// Which documents to list.
#[derive(Clone, Debug)]
pub struct DocumentFilter {
    /// The wall of security.
    pub tenant: Box<str>,
    /// Their kind.
    pub kind: Box<str>,
    /// Ids after this one.
    pub after: Box<str>,
    /// At most this many.
    pub limit: usize,
}

/// Times of one preview.
pub const NEXT_TIMES_MAX: usize = 100;

const MISMATCH: &str = "the partition answers a question with its own kind of answer";

impl Gateway {
    /// Reads something about workflows: JSON as Conductor's clients see it, `None` when what it
    /// names is not there.
    pub async fn workflows(&self, query: WorkflowQuery) -> Result<Option<Arc<str>>, GatewayError> {
        let QueryAnswer::Workflows(answer) = self.query(Query::Workflows(query)).await? else {
            unreachable!("{MISMATCH}")
        };
        Ok(answer)
    }

    /// Asks the partition.
    pub async fn query(&self, query: Query) -> Result<QueryAnswer, GatewayError> {
        let (sender, answer) = oneshot::channel();
        let reply = Box::new(move |answer| {
            // A caller that is gone does not want to know.
            let _gone = sender.send(answer);
        });
        self.shared.submit(Request::Query(query, reply))?;
        let answer = answer.await.map_err(|_| GatewayError::Stopped)?;
        answer.map_err(GatewayError::from)
    }

    /// One job, live or recently finished.
    pub async fn job(&self, key: JobKey) -> Result<Option<Box<JobView>>, GatewayError> {
        let QueryAnswer::Job(view) = self.query(Query::Job(key)).await? else {
            unreachable!("{MISMATCH}")
        };
        Ok(view)
    }

    /// A page of jobs, and where the next begins; 0 is "no more".
    pub async fn jobs(&self, filter: JobFilter) -> Result<(Vec<JobView>, u64), GatewayError> {
        let QueryAnswer::Jobs(jobs, next) = self.query(Query::Jobs(filter)).await? else {
            unreachable!("{MISMATCH}")
        };
        Ok((jobs, next))
    }

    /// The job that holds a unique key of a queue. It may have ended, and hold it for a while.
    pub async fn holder(
        &self,
        queue: QueueName,
        unique_key: &str,
    ) -> Result<Option<JobKey>, GatewayError> {
        let query = Query::Holder { queue, unique_key: unique_key.into() };
        let QueryAnswer::Holder(holder) = self.query(query).await? else {
            unreachable!("{MISMATCH}")
        };
        Ok(holder)
    }

    /// Where a job is and why it is not running.
    pub async fn why(&self, key: JobKey) -> Result<Option<Box<WhyView>>, GatewayError> {
        let QueryAnswer::Why(view) = self.query(Query::Why(key)).await? else {
            unreachable!("{MISMATCH}")
        };
        Ok(view)
    }

    /// The queues of a tenant, or all.
    pub async fn queues(&self, tenant: Option<Box<str>>) -> Result<Vec<QueueView>, GatewayError> {
        let QueryAnswer::Queues(queues) = self.query(Query::Queues(tenant)).await? else {
            unreachable!("{MISMATCH}")
        };
        Ok(queues)
    }

    /// A limit key.
    pub async fn limit_key(
        &self,
        tenant: Box<str>,
        name: Box<str>,
    ) -> Result<Option<LimitView>, GatewayError> {
        let QueryAnswer::Limit(view) = self.query(Query::Limit { tenant, name }).await? else {
            unreachable!("{MISMATCH}")
        };
        Ok(view)
    }

    /// Limit keys of a tenant whose names come after one, in order, and whether there are more.
    pub async fn limit_keys(
        &self,
        tenant: Box<str>,
        after: Box<str>,
        limit: usize,
    ) -> Result<(Vec<LimitView>, bool), GatewayError> {
        let query = Query::Limits { tenant, after, limit };
        let QueryAnswer::Limits(found, more) = self.query(query).await? else {
            unreachable!("{MISMATCH}")
        };
        Ok((found, more))
    }

    /// A document's version and bytes.
    pub async fn document(
        &self,
        name: DocumentName,
    ) -> Result<Option<(u64, Arc<[u8]>)>, GatewayError> {
        let DocumentName { tenant, kind, id } = name;
        let query = Query::Document { tenant, kind, id };
        let QueryAnswer::Document(document) = self.query(query).await? else {
            unreachable!("{MISMATCH}")
        };
        Ok(document)
    }

    /// A page of documents, without their bytes.
    pub async fn documents(&self, filter: DocumentFilter) -> Result<DocumentPage, GatewayError> {
        let DocumentFilter { tenant, kind, after, limit } = filter;
        let query = Query::Documents { tenant, kind, after, limit };
        let QueryAnswer::Documents(documents, more) = self.query(query).await? else {
            unreachable!("{MISMATCH}")
        };
        Ok(DocumentPage { documents, more })
    }

    /// A page of documents with their bytes, and whether there are more. It ends early when they are large.
    pub async fn whole_documents(
        &self,
        filter: DocumentFilter,
    ) -> Result<(Vec<DocumentView>, bool), GatewayError> {
        let DocumentFilter { tenant, kind, after, limit } = filter;
        let query = Query::WholeDocuments { tenant, kind, after, limit };
        let QueryAnswer::WholeDocuments(documents, more) = self.query(query).await? else {
            unreachable!("{MISMATCH}")
        };
        Ok((documents, more))
    }

    /// One schedule.
    pub async fn schedule(
        &self,
        name: ScheduleName,
    ) -> Result<Option<Box<Schedule>>, GatewayError> {
        let QueryAnswer::Schedule(schedule) = self.query(Query::Schedule(name)).await? else {
            unreachable!("{MISMATCH}")
        };
        Ok(schedule)
    }

    /// A page of schedules, by the beginning of their names.
    pub async fn schedules(&self, filter: ScheduleFilter) -> Result<SchedulePage, GatewayError> {
        let QueryAnswer::Schedules(page) = self.query(Query::Schedules(filter)).await? else {
            unreachable!("{MISMATCH}")
        };
        Ok(page)
    }

    /// The next times of a schedule that need not exist, after `after_ms` or after now; at most
    /// [`NEXT_TIMES_MAX`]. Reckoned here, not in the partition's loop.
    pub async fn next_times(
        &self,
        times: &ScheduleTimes,
        after_ms: Option<u64>,
        count: usize,
    ) -> Result<Vec<u64>, GatewayError> {
        let after_ms = match after_ms {
            Some(after_ms) => after_ms,
            None => self.now_ms().await?,
        };
        let table = Timetable::parse(times, after_ms).map_err(|error| {
            let problem = error.message.into();
            Rejection::from(ScheduleRejection::InvalidTimes { problem })
        })?;
        Ok(table.next(after_ms, count.min(NEXT_TIMES_MAX)))
    }

    /// The time of the partition.
    pub async fn now_ms(&self) -> Result<u64, GatewayError> {
        let QueryAnswer::Time(now_ms) = self.query(Query::Time).await? else {
            unreachable!("{MISMATCH}")
        };
        Ok(now_ms)
    }

    /// The partition itself.
    pub async fn status(&self) -> Result<Box<StatusView>, GatewayError> {
        let QueryAnswer::Status(status) = self.query(Query::Status).await? else {
            unreachable!("{MISMATCH}")
        };
        Ok(status)
    }
}
