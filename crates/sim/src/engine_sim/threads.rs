//! The commit, the loader and the checkpoint writer, one piece of work at a time.

use windlass_checkpoint::{Error as CheckpointError, View};
use windlass_log::{Log, LogError};
use windlass_partition::checkpoint::Written;
use windlass_partition::core::Delivery;
use windlass_partition::request::Request;

use super::machine::{Done, Life, Load, Machine, Stop, chain};

impl Machine {
    /// The commit thread does its next piece of work, if there is one.
    pub fn commit(&mut self, life: &mut Life) -> Result<(), Stop> {
        let Some(mut round) = life.work.pop_front() else { return Ok(()) };
        if let Some(mut batch) = round.batch.take() {
            match life.log.append(&mut batch) {
                Ok(position) => {
                    self.read_on(&mut *life.reader)?;
                    let last_lsn = batch.last_lsn();
                    if self.shadow.last_lsn() != last_lsn {
                        return Err(Stop::Violation(format!(
                            "batch up to {last_lsn} was appended, {} can be read",
                            self.shadow.last_lsn()
                        )));
                    }
                    life.done = Some(Done { last_lsn, position, batch });
                }
                Err(LogError::NoSpace) if !self.disk.is_crashed() => {
                    self.coverage.count("log", "batches that waited for room");
                    round.batch = Some(batch);
                    life.work.push_front(round);
                    return Ok(());
                }
                Err(error) => {
                    let stop = self.log_failed(&error);
                    round.deliveries.into_iter().for_each(Delivery::refuse);
                    return Err(stop);
                }
            }
        }
        for delivery in round.deliveries {
            if delivery.missing.is_empty() {
                deliver(life, delivery);
            } else {
                life.loads.push_back(Load::Delivery(delivery));
            }
        }
        self.check_disk()
    }

    /// The loader does its next piece of work.
    pub fn load(&mut self, life: &mut Life) -> Result<(), Stop> {
        match life.loads.pop_front() {
            None => Ok(()),
            Some(Load::Checkpoint(order)) => {
                life.writing = Some(*order);
                Ok(())
            }
            Some(Load::Delivery(mut delivery)) => {
                for missing in std::mem::take(&mut delivery.missing) {
                    self.coverage.count("payload", "read back from the store");
                    match life.store.get(&missing.key) {
                        Ok(Some(bytes)) => delivery.fill(&missing, bytes.into()),
                        Ok(None) => {
                            return Err(Stop::Violation(format!(
                                "no payload under {:02x?}",
                                missing.key
                            )));
                        }
                        Err(error) => {
                            delivery.refuse();
                            return Err(Stop::Stopped(chain(&error)));
                        }
                    }
                }
                deliver(life, delivery);
                Ok(())
            }
        }
    }

    /// The checkpoint writer does its next piece of work.
    pub fn write_checkpoint(&mut self, life: &mut Life) -> Result<(), Stop> {
        let Some(mut order) = life.writing.take() else { return Ok(()) };
        let position = order.position.to_raw();
        match order.images.write(&life.store, position, order.checksum) {
            Ok(()) => {}
            Err(error @ (CheckpointError::Poisoned | CheckpointError::Stale)) => {
                return Err(Stop::Stopped(chain(&error)));
            }
            Err(CheckpointError::Io { .. }) => {
                self.coverage.count("checkpoint", "failed and tried again");
                life.writing = Some(order);
                return Ok(());
            }
            Err(error) => return Err(Stop::Violation(chain(&error))),
        }
        self.coverage.count("checkpoint", "written");
        if let Err(error) = life.log.trim(order.images.lsn)
            && let stop @ (Stop::Crashed | Stop::Violation(_)) = self.log_failed(&error)
        {
            return Err(stop);
        }
        life.written = Some(Written::of(order.images));
        self.check_disk()
    }

    /// The commit thread has nothing to do for a while.
    pub fn idle(&mut self, life: &mut Life) -> Result<(), Stop> {
        if life.work.is_empty()
            && let Err(error) = life.log.idle()
            && let stop @ (Stop::Crashed | Stop::Violation(_)) = self.log_failed(&error)
        {
            return Err(stop);
        }
        self.check_disk()
    }

    fn check_disk(&self) -> Result<(), Stop> {
        if self.disk.is_crashed() { Err(Stop::Crashed) } else { Ok(()) }
    }
}

/// As the partition's deliverer does.
fn deliver(life: &mut Life, delivery: Delivery) {
    let left = delivery.leave();
    if !left.is_empty() {
        let unsent = left.iter().map(|job| job.unsent).collect();
        life.first.push_back(Request::Return(unsent));
    }
}
