//! When connections sync by themselves: a schedule of the engine each, that this face owns.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use windlass_gateway::GatewayError;
use windlass_gateway::request::{Answer, Schedule, ScheduleFilter};
use windlass_record::command::Command;
use windlass_record::rejection::Rejection;
use windlass_record::schedule::{
    CatchUp, DeleteSchedule, Overlap, PutPause, PutSchedule, ScheduleAction, ScheduleCommand,
    ScheduleName, ScheduleRejection, ScheduleSettings, ScheduleTime, ScheduleTimes,
};

use crate::answer::moment;
use crate::document::{Connection, Kept, Status, TimeUnit, Timing};
use crate::face::Face;
use crate::failure::{Answered, Failure};
use crate::limit::CHANGES_MAX;
use crate::{job, job_list, quartz};

/// Whose schedules these are.
const OWNER: &str = "airbyte";

/// What their names begin with.
const PREFIX: &str = "airbyte.";

/// Schedules that are read at once.
const PAGE: usize = 1_000;

/// The longest interval: what a century has.
const INTERVAL_MS_MAX: u64 = 36_500 * 86_400_000;

/// What is kept with a schedule of an interval, to know whether it is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Anchor {
    interval_ms: u64,
    /// When the run before was made.
    anchor_ms: u64,
}

impl Timing {
    /// The length of an interval, if it can be one.
    fn interval_ms(units: u64, unit: TimeUnit) -> Answered<u64> {
        const MINUTE_MS: u64 = 60_000;
        let unit_ms = match unit {
            TimeUnit::Minutes => MINUTE_MS,
            TimeUnit::Hours => 60 * MINUTE_MS,
            TimeUnit::Days => 24 * 60 * MINUTE_MS,
            TimeUnit::Weeks => 7 * 24 * 60 * MINUTE_MS,
            TimeUnit::Months => 30 * 24 * 60 * MINUTE_MS,
        };
        let interval_ms = units.checked_mul(unit_ms);
        interval_ms.filter(|it| (MINUTE_MS..=INTERVAL_MS_MAX).contains(it)).ok_or_else(|| {
            Failure::invalid(
                "The schedule's interval must be a minute at least, a century at most.",
            )
        })
    }
}

fn named(tenant: &str, connection: &str) -> ScheduleName {
    ScheduleName { tenant: tenant.into(), name: format!("{PREFIX}{connection}").into() }
}

/// Refuses times that the engine could not read, before anything is written.
pub(crate) async fn check(face: &Face, timing: &Timing) -> Answered<()> {
    match timing {
        Timing::Manual => Ok(()),
        Timing::Basic { units, time_unit } => Timing::interval_ms(*units, *time_unit).map(|_| ()),
        Timing::Cron { cron_expression } => {
            let times = quartz::times(cron_expression).map_err(Failure::invalid)?;
            let next = face.gateway.next_times(&times, None, 1).await?;
            if next.is_empty() {
                let detail = format!("'{cron_expression}' never comes.");
                return Err(Failure::invalid(detail));
            }
            Ok(())
        }
    }
}

/// Makes the schedule of a connection what the connection says. Whether a run is due at once: the first
/// of an interval, or one whose interval is over.
pub(crate) async fn put(face: &Face, tenant: &str, connection: &str) -> Answered<()> {
    if written(face, tenant, connection, Why::Changed).await? {
        // It may have been deleted meanwhile.
        is_written(ask(face, ScheduleCommand::RunNow(named(tenant, connection))).await)?;
    }
    Ok(())
}

/// The same at a start, which has read all connections and schedules: most have what they must have.
pub(crate) async fn align(
    face: &Face,
    tenant: &str,
    connection: &Connection,
    old: Option<&Schedule>,
) -> Answered<()> {
    let is_in_line = match wanted(face, tenant, connection, old, Why::Changed).await? {
        Some(wanted) => !wanted.is_due && old.is_some_and(|old| wanted.is_as(old)),
        None => old.is_none(),
    };
    if is_in_line { Ok(()) } else { put(face, tenant, &connection.connection_id).await }
}

/// A job of a connection was made beside its times: an interval counts from it.
pub(crate) async fn ran(face: &Face, tenant: &str, connection: &Connection) -> Answered<()> {
    if !matches!(connection.schedule, Timing::Basic { .. }) {
        return Ok(());
    }
    written(face, tenant, &connection.connection_id, Why::Ran).await.map(|_| ())
}

/// Why a schedule is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// The connection may say something else.
    Changed,
    /// A job was made.
    Ran,
}

/// Writes the schedule of a connection, again if somebody else wrote it meanwhile: what it says is what the
/// connection said after the schedule was read, so that of two changes the later one counts. Whether a run
/// is due.
async fn written(face: &Face, tenant: &str, id: &str, why: Why) -> Answered<bool> {
    let name = named(tenant, id);
    for _ in 0..CHANGES_MAX {
        let old = face.gateway.schedule(name.clone()).await?;
        let version = old.as_deref().map_or(0, |old| old.version);
        let found = face.read::<Connection>(tenant, id).await?.map(|found| found.is);
        let wanted = match &found {
            Some(connection) => wanted(face, tenant, connection, old.as_deref(), why).await?,
            // It was deleted meanwhile.
            None => None,
        };
        let Some(wanted) = wanted else {
            if version == 0 || is_written(delete_as(face, name.clone(), Some(version)).await)? {
                return Ok(false);
            }
            continue;
        };
        if old.as_deref().is_some_and(|old| wanted.is_as(old)) {
            return Ok(wanted.is_due);
        }
        let Wanted { settings, pause, is_due } = wanted;
        let expected_version = Some(version);
        let put = PutSchedule { name: name.clone(), expected_version, settings, pause };
        if !is_written(ask(face, ScheduleCommand::Put(Box::new(put))).await)? {
            continue;
        }
        // Its schedule may have been deleted before this one was written.
        if version == 0 && face.raw(tenant, Connection::KIND, id).await?.is_none() {
            delete(face, tenant, id).await?;
            return Ok(false);
        }
        return Ok(is_due);
    }
    Err(Failure::try_again_later("The connection is being changed by others."))
}

/// Whether it was written; `false` if somebody else was first.
fn is_written(answer: Result<Answer, GatewayError>) -> Answered<bool> {
    match answer {
        Ok(_) => Ok(true),
        Err(GatewayError::Rejected(Rejection::Schedule(rejection))) => match *rejection {
            ScheduleRejection::Version { .. }
            | ScheduleRejection::Exists { .. }
            | ScheduleRejection::NotFound { .. } => Ok(false),
            ScheduleRejection::InvalidTimes { .. } => {
                Err(GatewayError::Rejected(Rejection::Schedule(rejection)).into())
            }
        },
        Err(error) => Err(error.into()),
    }
}

/// What the schedule of a connection must be.
struct Wanted {
    settings: ScheduleSettings,
    pause: PutPause,
    /// Whether a run is due at once.
    is_due: bool,
}

impl Wanted {
    /// Whether a schedule is that already.
    fn is_as(&self, old: &Schedule) -> bool {
        let is_paused_so = match &self.pause {
            PutPause::AsItIs => true,
            PutPause::Running => old.paused.is_none(),
            PutPause::Paused(_) => old.paused.is_some(),
        };
        old.settings == self.settings && is_paused_so
    }
}

/// `None` is no schedule at all.
async fn wanted(
    face: &Face,
    tenant: &str,
    connection: &Connection,
    old: Option<&Schedule>,
    why: Why,
) -> Answered<Option<Wanted>> {
    let is_active = connection.status == Status::Active;
    let (times, anchor, is_due) = match &connection.schedule {
        Timing::Manual => return Ok(None),
        Timing::Cron { cron_expression } => {
            let times = quartz::times(cron_expression).map_err(Failure::invalid)?;
            (times, Anchor::default(), false)
        }
        Timing::Basic { units, time_unit } => {
            let interval_ms = Timing::interval_ms(*units, *time_unit)?;
            let (anchor, is_due) = match why {
                Why::Changed => anchored(face, tenant, connection, interval_ms, old).await?,
                Why::Ran => (Anchor { interval_ms, anchor_ms: face.now_ms().await? }, false),
            };
            (every(anchor), anchor, is_due && is_active)
        }
    };
    let settings = settings(face, connection, times, anchor);
    let pause = match (is_active, why) {
        (false, _) => PutPause::Paused("the connection is not active".into()),
        (true, Why::Changed) => PutPause::Running,
        (true, Why::Ran) => PutPause::AsItIs,
    };
    Ok(Some(Wanted { settings, pause, is_due }))
}

fn settings(
    face: &Face,
    connection: &Connection,
    times: ScheduleTimes,
    anchor: Anchor,
) -> ScheduleSettings {
    let spec = serde_json::to_string(&anchor).unwrap_or_default();
    ScheduleSettings {
        owner: OWNER.into(),
        spec: spec.into(),
        times,
        overlap: Overlap::Skip,
        catch_up: CatchUp::One,
        action: ScheduleAction::Job(Box::new(job::on_time(connection, face.settings.retry))),
    }
}

/// Every so often, counted from the run before.
fn every(anchor: Anchor) -> ScheduleTimes {
    let start = moment(anchor.anchor_ms);
    let expression = format!("R/{start}/PT{}S", anchor.interval_ms / 1_000);
    let time = ScheduleTime { expression: expression.into(), zone: "UTC".into() };
    ScheduleTimes { expressions: vec![time], ..ScheduleTimes::default() }
}

/// From when an interval counts, and whether it is over: the newest job of the connection, or now if
/// there is none. What is under way with the same interval goes on as it is. That of a connection that is
/// not active is reckoned when it becomes so again, and that of a new one has nothing to look for.
async fn anchored(
    face: &Face,
    tenant: &str,
    connection: &Connection,
    interval_ms: u64,
    old: Option<&Schedule>,
) -> Answered<(Anchor, bool)> {
    let is_active = connection.status == Status::Active;
    if let Some(old) = old.filter(|old| old.paused.is_none() || !is_active)
        && let Ok(anchor) = serde_json::from_str::<Anchor>(&old.settings.spec)
        && anchor.interval_ms == interval_ms
    {
        return Ok((anchor, false));
    }
    let now_ms = face.now_ms().await?;
    let is_new = old.is_none() && connection.updated_at == connection.created_at;
    let newest = match is_active && !is_new {
        true => job_list::newest_ms(face, tenant, connection).await?,
        false => None,
    };
    Ok(match newest.filter(|made_ms| made_ms.saturating_add(interval_ms) > now_ms) {
        Some(anchor_ms) => (Anchor { interval_ms, anchor_ms }, false),
        None => (Anchor { interval_ms, anchor_ms: now_ms }, true),
    })
}

/// Forgets the schedule of a connection, if there is one.
pub(crate) async fn delete(face: &Face, tenant: &str, connection: &str) -> Answered<()> {
    match delete_as(face, named(tenant, connection), None).await {
        Err(GatewayError::Rejected(Rejection::Schedule(rejection)))
            if matches!(*rejection, ScheduleRejection::NotFound { .. }) =>
        {
            Ok(())
        }
        other => other.map(|_| ()).map_err(Failure::from),
    }
}

async fn delete_as(
    face: &Face,
    name: ScheduleName,
    expected_version: Option<u64>,
) -> Result<Answer, GatewayError> {
    ask(face, ScheduleCommand::Delete(DeleteSchedule { name, expected_version })).await
}

async fn ask(face: &Face, command: ScheduleCommand) -> Result<Answer, GatewayError> {
    face.gateway.command(Command::Schedule(command)).await
}

/// Our schedules, by connection.
pub(crate) async fn all(face: &Face, tenant: &str) -> Answered<HashMap<String, Schedule>> {
    let mut found = HashMap::new();
    let mut after = Some(Box::default());
    while let Some(from) = after {
        let filter = ScheduleFilter {
            tenant: tenant.into(),
            prefix: PREFIX.into(),
            after: from,
            owner: Some(OWNER.into()),
            limit: PAGE,
        };
        let page = face.gateway.schedules(filter).await?;
        found.extend(page.schedules.into_iter().filter_map(|schedule| {
            let connection = schedule.name.name.strip_prefix(PREFIX)?.to_owned();
            Some((connection, schedule))
        }));
        after = page.next;
    }
    Ok(found)
}
