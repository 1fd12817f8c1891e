//! Events about queues and limit keys.

use windlass_record::id::{JobKey, LimitId, QueueId};
use windlass_record::policy::{JobOrder, LimitSettings, QueueSettings};

use crate::lifecycle::JobState;
use crate::state::fair::Queue;
use crate::state::job::Slot;
use crate::state::{Gate, State};

impl State {
    pub(super) fn queue_created(
        &mut self,
        id: QueueId,
        tenant: &str,
        name: &str,
        settings: &QueueSettings,
    ) {
        let queue = Queue::new(tenant.into(), name.into(), *settings);
        assert_eq!(usize::try_from(id.0).ok(), Some(self.queues.len()), "queue ids are dense");
        self.queue_names.insert((queue.tenant.clone(), queue.name.clone()), id);
        self.queues.push(queue);
        self.mark_queue(id);
    }

    /// A change of the order or of what goes first moves jobs that wait.
    pub(super) fn queue_configured(&mut self, id: QueueId, settings: &QueueSettings) {
        self.mark_queue(id);
        let old = std::mem::replace(&mut self.queue_mut(id).settings, *settings);
        if old.retries_first == settings.retries_first && old.order == settings.order {
            return;
        }
        let mut jobs: Vec<(u64, JobKey, Slot)> = self
            .jobs
            .iter()
            .filter(|(slot, _)| self.queue_of(*slot) == id)
            .map(|(slot, job)| (job.order, job.key, slot))
            .collect();
        jobs.sort_unstable();
        if old.order != settings.order {
            self.reorder(id, &jobs);
        }
        if old.retries_first != settings.retries_first {
            for &(_, _, slot) in &jobs {
                self.touch(slot);
                let priority = self.priority(slot);
                match self.job(slot).state == JobState::Ready {
                    true => self.relane_ready(slot, priority),
                    false => self.relane(slot, priority),
                }
            }
        }
    }

    /// Gives all jobs of a queue new places among their equals. Bays and groups keep theirs.
    fn reorder(&mut self, id: QueueId, jobs: &[(u64, JobKey, Slot)]) {
        let order_rule = self.queue(id).settings.order;
        self.empty_lanes(id);
        for &(_, key, slot) in jobs {
            self.touch(slot);
            let order = match order_rule {
                JobOrder::Creation => key.counter(),
                JobOrder::Ready => self.next_stamp(),
            };
            self.jobs.get_mut(slot).order = order;
            if self.job(slot).state == JobState::Ready {
                let lane = self.job(slot).lane;
                self.lanes.get_mut(lane).queue.insert(&self.jobs, slot);
            }
        }
        self.rank_all_lanes(id);
    }

    pub(super) fn limit_configured(
        &mut self,
        id: LimitId,
        (tenant, name): (&str, &str),
        settings: &LimitSettings,
        implied: bool,
        now_ms: u64,
    ) {
        if !self.limits.contains_key(&id) {
            let limit = crate::state::new_limit(tenant, name);
            self.keep_limit(id, limit);
            self.last_limit = self.last_limit.max(id.0);
        }
        self.mark_limit(id);
        let limit = self.limit_mut(id);
        limit.settings = *settings;
        limit.implied = implied;
        limit.prune(now_ms);
        self.refresh_gates(id);
    }

    pub(super) fn rate_freed(&mut self, id: LimitId, now_ms: u64) {
        self.mark_limit(id);
        self.limit_mut(id).prune(now_ms);
        self.wake(id, Gate::Rate);
        self.forget_limit_if_unused(id);
    }
}
