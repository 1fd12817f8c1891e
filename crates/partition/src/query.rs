//! Reads. They see the state as the loop has it and are answered when all of it is durable.

use std::sync::Arc;

use windlass_engine::lifecycle::JobState;
use windlass_engine::state::document::DocumentName;
use windlass_engine::state::job::Extra;
use windlass_engine::{Slot, workflows};
use windlass_record::event::Outcome;
use windlass_record::id::{JobKey, Payload, QueueId};

use crate::core::{Core, Missing};
use crate::finished::FinishedJob;
use crate::payload::Bytes;
use crate::request::{
    DocumentView, JobFilter, JobView, Query, QueryAnswer, QueueView, ScheduleFilter, SchedulePage,
    StatusView,
};
use crate::tally::Tally;

/// Jobs of a page at most.
const PAGE_MAX: usize = 1_000;
/// Bytes of schedules or of documents after which a page ends.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// Jobs looked at for one page: a long walk is many pages, some of them short.
const LOOKS_PER_PAGE_MAX: usize = 20_000;

/// What the core cannot know about itself.
pub(crate) struct LogView {
    pub(crate) durable_lsn: u64,
    pub(crate) checkpoint_lsn: u64,
    pub(crate) last_sync_ms: u64,
    pub(crate) checkpoint_ms: u64,
    pub(crate) checkpoint_took_ms: u64,
    pub(crate) appends_us: Tally,
    pub(crate) batch_commands: Tally,
}

impl Core {
    pub(crate) fn query(&self, query: &Query) -> (QueryAnswer, Vec<Missing>) {
        let mut missing = Vec::new();
        let answer = match query {
            Query::Job(key) => QueryAnswer::Job(self.job_view(*key, &mut missing)),
            Query::Jobs(filter) => self.jobs(filter),
            Query::Holder { queue, unique_key } => {
                let state = self.engine.state();
                QueryAnswer::Holder(state.holder(queue, unique_key, self.now_ms()))
            }
            Query::Why(key) => QueryAnswer::Why(self.why_view(*key)),
            Query::Queues(tenant) => QueryAnswer::Queues(self.queue_views(tenant.as_deref())),
            Query::Limit { tenant, name } => {
                QueryAnswer::Limit(self.engine.state().limit_named(tenant, name, self.now_ms()))
            }
            Query::Limits { tenant, after, limit } => {
                let limit = page(*limit);
                let found = self.engine.state().limits_after(tenant, after, self.now_ms());
                let mut found: Vec<_> = found.take(limit + 1).collect();
                let more = found.len() > limit;
                found.truncate(limit);
                QueryAnswer::Limits(found, more)
            }
            Query::Document { tenant, kind, id } => {
                let name =
                    DocumentName { tenant: tenant.clone(), kind: kind.clone(), id: id.clone() };
                let document = self.engine.state().document(&name);
                QueryAnswer::Document(document.map(|document| {
                    (document.version, self.bytes(document.bytes, false, &mut missing))
                }))
            }
            Query::Documents { tenant, kind, after, limit } => {
                let limit = page(*limit);
                let mut found: Vec<(Box<str>, u64)> = self
                    .engine
                    .state()
                    .documents_after(tenant, kind, after)
                    .take(limit + 1)
                    .map(|(name, document)| (name.id.clone(), document.version))
                    .collect();
                let more = found.len() > limit;
                found.truncate(limit);
                QueryAnswer::Documents(found, more)
            }
            Query::WholeDocuments { tenant, kind, after, limit } => {
                self.whole_documents((tenant, kind, after), page(*limit), &mut missing)
            }
            Query::Workflows(query) => {
                let state = self.engine.state();
                let ask = |job| state.find(job).map(|slot| state.task_job_now(slot));
                let answer = workflows::answer(state.flow().workflows(), query, &ask);
                QueryAnswer::Workflows(answer.map(|answer| answer.to_string().into()))
            }
            Query::Schedule(name) => {
                let schedule = self.engine.state().schedules().named(name);
                QueryAnswer::Schedule(schedule.cloned().map(Box::new))
            }
            Query::Schedules(filter) => QueryAnswer::Schedules(self.schedules(filter)),
            Query::Time => QueryAnswer::Time(self.now_ms()),
            Query::Status => {
                unreachable!("the loop answers this itself: only it knows the log")
            }
        };
        (answer, missing)
    }

    pub(crate) fn status(&self, log: LogView) -> StatusView {
        StatusView {
            partition: self.partition(),
            epoch: self.epoch(),
            lsn: self.last_lsn(),
            durable_lsn: log.durable_lsn,
            checkpoint_lsn: log.checkpoint_lsn,
            last_sync_ms: log.last_sync_ms,
            checkpoint_ms: log.checkpoint_ms,
            checkpoint_took_ms: log.checkpoint_took_ms,
            appends_us: log.appends_us,
            batch_commands: log.batch_commands,
            live_jobs: self.engine.state().jobs().live(),
            waiters: u32::try_from(self.waiters.len()).unwrap_or(u32::MAX),
            payload_bytes: self.payloads.resident_bytes(),
            alerts: self.alerts,
            refusing: self.refusing.clone(),
        }
    }

    fn job_view(&self, key: JobKey, missing: &mut Vec<Missing>) -> Option<Box<JobView>> {
        if let Some(slot) = self.engine.state().find(key) {
            let mut view = self.live_view(slot);
            view.payload = self.bytes(self.engine.state().job(slot).payload, false, missing);
            view.extra = self.engine.state().job(slot).extra().map(|extra| Box::new(extra.clone()));
            return Some(Box::new(view));
        }
        let ended = self.finished.get(key)?;
        let mut view = self.ended_view(ended);
        view.result = self.bytes(ended.result, true, missing);
        view.extra = ended.extra.clone();
        Some(Box::new(view))
    }

    fn whole_documents(
        &self,
        (tenant, kind, after): (&str, &str, &str),
        limit: usize,
        missing: &mut Vec<Missing>,
    ) -> QueryAnswer {
        let (mut found, mut bytes) = (Vec::new(), 0);
        for (name, document) in self.engine.state().documents_after(tenant, kind, after) {
            if found.len() >= limit || bytes > PAGE_BYTES_MAX {
                return QueryAnswer::WholeDocuments(found, true);
            }
            bytes += usize::try_from(document.bytes.len).unwrap_or(usize::MAX);
            let before = missing.len();
            let view = DocumentView {
                id: name.id.clone(),
                version: document.version,
                bytes: self.bytes(document.bytes, false, missing),
            };
            missing.iter_mut().skip(before).for_each(|missing| missing.index = found.len());
            found.push(view);
        }
        QueryAnswer::WholeDocuments(found, false)
    }

    fn bytes(&self, payload: Payload, result: bool, missing: &mut Vec<Missing>) -> Arc<[u8]> {
        match self.payloads.get(payload) {
            Bytes::Here(bytes) => bytes,
            Bytes::Stored(key) => {
                missing.push(Missing { index: 0, key, result });
                Arc::default()
            }
        }
    }

    fn live_view(&self, slot: Slot) -> JobView {
        let state = self.engine.state();
        let job = state.job(slot);
        let queue = state.queue(state.queue_of(slot));
        let incident = job.extra().and_then(|extra| extra.incident.as_ref());
        JobView {
            key: job.key,
            tenant: queue.tenant.clone(),
            queue: queue.name.clone(),
            job_type: state.type_name(slot).clone(),
            group: state.group_name(slot).clone(),
            priority: state.priority(slot),
            state: job.state.name(),
            outcome: None,
            retries: job.retries,
            attempt: job.attempt,
            activation: job.activation,
            created_ms: job.created_ms,
            time_ms: incident.map_or(job.due_ms, |incident| incident.since_ms),
            worker: state.worker_name(slot).cloned(),
            payload: Arc::default(),
            result: Arc::default(),
            message: job.extra().map(|extra| extra.message.clone()).unwrap_or_default(),
            cancel_asked: job.cancel_asked(),
            alerts: job.alerts().collect(),
            unique_key: unique_key(job.extra()),
            extra: incident.map(|incident| {
                Box::new(Extra { incident: Some(incident.clone()), ..Extra::default() })
            }),
        }
    }

    fn ended_view(&self, ended: &FinishedJob) -> JobView {
        let queue = self.engine.state().queue(ended.queue);
        JobView {
            key: ended.key,
            tenant: queue.tenant.clone(),
            queue: queue.name.clone(),
            job_type: ended.job_type.clone(),
            group: ended.group.clone(),
            priority: ended.priority,
            state: rest_state(ended.outcome).name(),
            outcome: Some(ended.outcome),
            retries: ended.retries,
            attempt: ended.attempt,
            activation: ended.activation,
            created_ms: ended.created_ms,
            time_ms: ended.ended_ms,
            worker: None,
            payload: Arc::default(),
            result: Arc::default(),
            message: ended.message.clone(),
            cancel_asked: ended.cancel_asked,
            alerts: Vec::new(),
            unique_key: unique_key(ended.extra.as_deref()),
            extra: None,
        }
    }

    fn jobs(&self, filter: &JobFilter) -> QueryAnswer {
        let at_rest = [JobState::Completed, JobState::Failed, JobState::Cancelled];
        let wants_rest =
            filter.state.is_some_and(|name| at_rest.iter().any(|state| state.name() == name));
        if wants_rest { self.ended_jobs(filter) } else { self.live_jobs(filter) }
    }

    fn live_jobs(&self, filter: &JobFilter) -> QueryAnswer {
        let state = self.engine.state();
        let limit = page(filter.limit);
        let mut found = Vec::new();
        let mut looks = 0;
        for (slot, job) in state.jobs().iter_from(filter.cursor) {
            looks += 1;
            if found.len() >= limit || looks > LOOKS_PER_PAGE_MAX {
                return QueryAnswer::Jobs(found, u64::from(slot.0));
            }
            if filter.state.is_some_and(|name| name != job.state.name()) {
                continue;
            }
            let queue = state.queue(state.queue_of(slot));
            let group = state.group_name(slot);
            if differs(filter.tenant.as_deref(), &queue.tenant)
                || differs(filter.queue.as_deref(), &queue.name)
                || differs(filter.group.as_deref(), group)
            {
                continue;
            }
            found.push(self.live_view(slot));
        }
        QueryAnswer::Jobs(found, 0)
    }

    /// Newest first, queue by queue. The cursor is a queue and a number in it.
    fn ended_jobs(&self, filter: &JobFilter) -> QueryAnswer {
        const NUMBER_BITS: u32 = 40;
        let limit = page(filter.limit);
        let (from_queue, mut before) =
            (filter.cursor >> NUMBER_BITS, filter.cursor & ((1 << NUMBER_BITS) - 1));
        let cursor = |queue: QueueId, number: u64| u64::from(queue.0) << NUMBER_BITS | number;
        let (mut found, mut looks) = (Vec::new(), 0);
        for (id, queue) in
            self.engine.state().queues().skip_while(|(id, _)| u64::from(id.0) < from_queue)
        {
            looks += 1;
            if looks > LOOKS_PER_PAGE_MAX {
                return QueryAnswer::Jobs(found, cursor(id, 0));
            }
            if differs(filter.tenant.as_deref(), &queue.tenant)
                || differs(filter.queue.as_deref(), &queue.name)
            {
                continue;
            }
            for (number, ended) in self.finished.newest(id, std::mem::take(&mut before)) {
                looks += 1;
                if found.len() >= limit || looks > LOOKS_PER_PAGE_MAX {
                    return QueryAnswer::Jobs(found, cursor(id, number + 1));
                }
                if filter.state != Some(rest_state(ended.outcome).name())
                    || differs(filter.group.as_deref(), &ended.group)
                {
                    continue;
                }
                found.push(self.ended_view(ended));
            }
        }
        QueryAnswer::Jobs(found, 0)
    }

    fn schedules(&self, filter: &ScheduleFilter) -> SchedulePage {
        let limit = page(filter.limit);
        let (mut page, mut bytes) = (SchedulePage::default(), 0);
        let all = self.engine.state().schedules();
        let mut last: Option<&str> = None;
        let found = all.list(&filter.tenant, &filter.prefix, &filter.after);
        for (looks, schedule) in found.enumerate() {
            if page.schedules.len() >= limit || looks > LOOKS_PER_PAGE_MAX || bytes > PAGE_BYTES_MAX
            {
                page.next = last.map(Box::from);
                break;
            }
            last = Some(&schedule.name.name);
            if !differs(filter.owner.as_deref(), &schedule.settings.owner) {
                bytes += schedule.settings.bytes();
                page.schedules.push(schedule.clone());
            }
        }
        page
    }

    fn queue_views(&self, tenant: Option<&str>) -> Vec<QueueView> {
        self.engine
            .state()
            .queues()
            .filter(|(_, queue)| !differs(tenant, &queue.tenant))
            .map(|(id, queue)| QueueView {
                id,
                tenant: queue.tenant.clone(),
                name: queue.name.clone(),
                paused: queue.paused,
                settings: queue.settings,
                counts: queue.counts,
                groups: queue.group_count(),
                waiting_workers: self.waiters.in_line(id),
                finished: self.finished.counts(id),
            })
            .collect()
    }
}

fn unique_key(extra: Option<&Extra>) -> Box<str> {
    extra.map(|extra| extra.options.unique_key.clone()).unwrap_or_default()
}

fn page(limit: usize) -> usize {
    if limit == 0 { 100 } else { limit.min(PAGE_MAX) }
}

fn differs(wanted: Option<&str>, found: &str) -> bool {
    wanted.is_some_and(|wanted| wanted != found)
}

fn rest_state(outcome: Outcome) -> JobState {
    match outcome {
        Outcome::Completed | Outcome::CompletedWithErrors => JobState::Completed,
        Outcome::Failed | Outcome::FailedForGood | Outcome::TimedOut => JobState::Failed,
        Outcome::Cancelled | Outcome::Skipped => JobState::Cancelled,
    }
}
