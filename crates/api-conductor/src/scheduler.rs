//! Schedules that start workflows: `/scheduler`. They are schedules of the engine that this face
//! owns; what the engine does not need is kept in their spec.

use std::cmp::Reverse;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{get, put};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use windlass_gateway::request::{Answer, Run, RunOutcome, Schedule, ScheduleFilter};
use windlass_record::command::Command;
use windlass_record::schedule::{
    CatchUp, DeleteSchedule, Overlap, PauseSchedule, PutPause, PutSchedule, ScheduleAction,
    ScheduleCommand, ScheduleName, ScheduleSettings, ScheduleTime, ScheduleTimes,
};
use windlass_record::workflow::{WORKFLOW_TENANT, id_of};

use crate::answer::{Empty, Shown};
use crate::bulk::BulkResponse;
use crate::condition::Conditions;
use crate::extract::{At, Body, Object, Params};
use crate::face::Face;
use crate::failure::{Answered, Failure};
use crate::limit::BULK_ITEMS_MAX;
use crate::search::SearchResult;

pub(crate) fn routes() -> Router<Face> {
    Router::new()
        .route("/scheduler/schedules", get(list).post(write))
        .route("/scheduler/schedules/search", get(search))
        .route("/scheduler/schedules/{a}", get(show).delete(remove))
        .route("/scheduler/schedules/{a}/pause", put(pause))
        .route("/scheduler/schedules/{a}/resume", put(resume))
        .route("/scheduler/nextFewSchedules", get(next_times))
        .route("/scheduler/search/executions", get(executions))
        .route("/scheduler/admin/requeue", get(requeue))
        .route("/scheduler/admin/pause", get(pause_all))
        .route("/scheduler/admin/resume", get(resume_all))
        .route("/scheduler/bulk/pause", put(pause_many))
        .route("/scheduler/bulk/resume", put(resume_many))
}

/// Whose schedules these are.
const OWNER: &str = "conductor";

/// Schedules that are read at once.
const PAGE: usize = 1_000;

/// Times of a preview.
const NEXT_MAX: usize = 5;

/// A schedule on this wire.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct WorkflowSchedule {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cron_expression: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cron_schedules: Option<Vec<CronSchedule>>,
    run_catchup_schedule_instances: Option<bool>,
    paused: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_workflow_request: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule_start_time: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule_end_time: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    create_time: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_time: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_run_time: Option<u64>,
}

/// Times of one zone.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct CronSchedule {
    cron_expression: Option<String>,
    zone_id: Option<String>,
}

/// The zone when nothing is said.
const ZONE_DEFAULT: &str = "UTC";

impl WorkflowSchedule {
    fn times(&self) -> ScheduleTimes {
        let time = |expression: &Option<String>, zone: &Option<String>| ScheduleTime {
            expression: expression.as_deref().unwrap_or_default().into(),
            zone: zone.as_deref().filter(|it| !it.is_empty()).unwrap_or(ZONE_DEFAULT).into(),
        };
        let many = self.cron_schedules.iter().flatten();
        let mut expressions: Vec<ScheduleTime> =
            many.map(|it| time(&it.cron_expression, &it.zone_id)).collect();
        if expressions.is_empty() {
            expressions.push(time(&self.cron_expression, &self.zone_id));
        }
        let ms =
            |given: Option<i64>| given.and_then(|ms| u64::try_from(ms).ok()).filter(|ms| *ms > 0);
        let (starts_ms, ends_ms) = (ms(self.schedule_start_time), ms(self.schedule_end_time));
        ScheduleTimes { expressions, starts_ms, ends_ms }
    }

    /// The command that makes it, or the sentences that say what is missing.
    fn put(mut self) -> Answered<PutSchedule> {
        let name = self.name.take().unwrap_or_default();
        let request = self.start_workflow_request.take();
        let mut problems = Vec::new();
        if name.is_empty() {
            problems.push("Schedule name cannot be null or empty".to_owned());
        }
        let Some(request) = request.filter(|request| request.get().starts_with('{')) else {
            problems.push("startWorkflowRequest cannot be null or empty".to_owned());
            return Err(Failure::validation(problems));
        };
        if !problems.is_empty() {
            return Err(Failure::validation(problems));
        }
        let pause = match self.paused.take() {
            Some(true) => PutPause::Paused(self.paused_reason.take().unwrap_or_default().into()),
            Some(false) | None => PutPause::Running,
        };
        // Each time starts a workflow, whatever became of the one before.
        let overlap = Overlap::Allow;
        let catch_up = match self.run_catchup_schedule_instances {
            Some(true) => CatchUp::All,
            Some(false) | None => CatchUp::One,
        };
        let settings = ScheduleSettings {
            owner: OWNER.into(),
            times: self.times(),
            overlap,
            catch_up,
            action: ScheduleAction::Workflow { request: without_nulls(&request)?.into() },
            spec: serde_json::to_string(&self).expect("a schedule is plain data").into(),
        };
        Ok(PutSchedule { name: named(&name), expected_version: None, settings, pause })
    }

    /// As clients see it.
    fn shown(schedule: &Schedule) -> WorkflowSchedule {
        let kept: WorkflowSchedule =
            serde_json::from_str(&schedule.settings.spec).unwrap_or_default();
        let request = match &schedule.settings.action {
            ScheduleAction::Workflow { request } => RawValue::from_string(request.to_string()).ok(),
            ScheduleAction::Job(_) => None,
        };
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        WorkflowSchedule {
            name: some(&schedule.name.name),
            zone_id: kept.zone_id.or_else(|| some(ZONE_DEFAULT)),
            cron_schedules: Some(kept.cron_schedules.unwrap_or_default()),
            run_catchup_schedule_instances: Some(
                kept.run_catchup_schedule_instances.unwrap_or(false),
            ),
            paused: Some(schedule.paused.is_some()),
            paused_reason: schedule.paused.as_deref().and_then(some),
            start_workflow_request: request,
            create_time: Some(schedule.created_ms),
            updated_time: Some(schedule.updated_ms),
            next_run_time: schedule.next_due_ms,
            ..kept
        }
    }
}

/// A request whose null fields are absent: nobody is there to be told that they are null.
fn without_nulls(request: &RawValue) -> Answered<String> {
    let request = serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(request.get());
    let mut request = request.map_err(|error| crate::extract::not_json(&error))?;
    request.retain(|_, value| !value.is_null());
    Ok(serde_json::Value::Object(request).to_string())
}

fn named(name: &str) -> ScheduleName {
    ScheduleName { tenant: WORKFLOW_TENANT.into(), name: name.into() }
}

/// The name of the workflow that it starts.
fn workflow_of(schedule: &Schedule) -> String {
    #[derive(Default, Deserialize)]
    struct Named {
        name: Option<String>,
    }
    match &schedule.settings.action {
        ScheduleAction::Workflow { request } => {
            serde_json::from_str::<Named>(request).unwrap_or_default().name.unwrap_or_default()
        }
        ScheduleAction::Job(_) => String::new(),
    }
}

fn no_schedule(name: &str) -> Failure {
    Failure::not_found(format!("Schedule '{name}' not found"))
}

/// One of ours.
async fn find(face: &Face, name: &str) -> Answered<Option<Box<Schedule>>> {
    let found = face.gateway.schedule(named(name)).await?;
    Ok(found.filter(|schedule| &*schedule.settings.owner == OWNER))
}

/// All of ours, by name.
async fn all(face: &Face) -> Answered<Vec<Schedule>> {
    let mut found = Vec::new();
    let mut after = Some(Box::default());
    while let Some(from) = after {
        let filter = ScheduleFilter {
            tenant: WORKFLOW_TENANT.into(),
            prefix: Box::default(),
            after: from,
            owner: Some(OWNER.into()),
            limit: PAGE,
        };
        let page = face.gateway.schedules(filter).await?;
        found.extend(page.schedules);
        after = page.next;
    }
    Ok(found)
}

async fn ask(face: &Face, command: ScheduleCommand) -> Answered<Answer> {
    Ok(face.gateway.command(Command::Schedule(command)).await?)
}

async fn write(
    State(face): State<Face>,
    Object(given): Object<WorkflowSchedule>,
) -> Answered<impl IntoResponse> {
    let put = given.put()?;
    let name = put.name.name.clone();
    let other = face.gateway.schedule(put.name.clone()).await?;
    if other.is_some_and(|schedule| &*schedule.settings.owner != OWNER) {
        let message = format!("Schedule '{name}' belongs to another");
        return Err(Failure::new(StatusCode::CONFLICT, message));
    }
    ask(&face, ScheduleCommand::Put(Box::new(put))).await?;
    let made = find(&face, &name).await?.ok_or_else(|| no_schedule(&name))?;
    Ok(Shown(WorkflowSchedule::shown(&made)))
}

async fn show(State(face): State<Face>, At(name): At<String>) -> Answered<impl IntoResponse> {
    let found = find(&face, &name).await?.ok_or_else(|| no_schedule(&name))?;
    Ok(Shown(WorkflowSchedule::shown(&found)))
}

async fn list(State(face): State<Face>, params: Params) -> Answered<impl IntoResponse> {
    let workflow = params.text("workflowName");
    let mut found = all(&face).await?;
    found.retain(|schedule| workflow.is_empty() || workflow_of(schedule) == workflow);
    Ok(Shown(found.iter().map(WorkflowSchedule::shown).collect::<Vec<_>>()))
}

async fn search(State(face): State<Face>, params: Params) -> Answered<impl IntoResponse> {
    let (workflow, name) = (params.text("workflowName"), params.text("scheduleName"));
    let paused = match params.find("paused") {
        Some(_) => Some(params.flag("paused", false)?),
        None => None,
    };
    let text = params.find("freeText").filter(|text| *text != "*").unwrap_or_default();
    let (start, size) = (params.count("start", 0)?, params.count("size", 100)?);
    let mut found = all(&face).await?;
    found.retain(|schedule| {
        (workflow.is_empty() || workflow_of(schedule) == workflow)
            && schedule.name.name.contains(name)
            && paused.is_none_or(|paused| paused == schedule.paused.is_some())
            && (text.is_empty()
                || schedule.name.name.contains(text)
                || schedule.settings.spec.contains(text))
    });
    let total_hits = u64::try_from(found.len()).unwrap_or(u64::MAX);
    let mut shown: Vec<_> = found.iter().map(WorkflowSchedule::shown).collect();
    sort_as_asked(&mut shown, &params);
    let results = shown.into_iter().skip(start).take(size).collect::<Vec<_>>();
    Ok(Shown(SearchResult { total_hits, results }))
}

/// Sorts by the fields that a request names, `field:DESC` or `field`, the first of them first. One
/// that nothing has leaves the order as it is.
fn sort_as_asked<T: Serialize>(found: &mut [T], params: &Params) {
    let terms = params.all("sort").flat_map(|sort| sort.split('|')).map(str::trim);
    let terms: Vec<&str> = terms.filter(|term| !term.is_empty()).collect();
    // The sort keeps the order of equals: what counts most comes last.
    for term in terms.into_iter().rev() {
        let (name, direction) = term.split_once(':').unwrap_or((term, "ASC"));
        let descends = direction.eq_ignore_ascii_case("DESC");
        found.sort_by_cached_key(|it| {
            let field = serde_json::to_value(it).ok().and_then(|it| it.get(name).cloned());
            let field = field.unwrap_or_default();
            let key = (field.as_u64(), field.as_str().map(str::to_owned));
            if descends { (Some(Reverse(key)), None) } else { (None, Some(key)) }
        });
    }
}

/// What is not there is gone.
async fn remove(State(face): State<Face>, At(name): At<String>) -> Answered<Empty> {
    if find(&face, &name).await?.is_some() {
        let command = DeleteSchedule { name: named(&name), expected_version: None };
        ask(&face, ScheduleCommand::Delete(command)).await?;
    }
    Ok(Empty)
}

async fn pause_one(face: &Face, name: &str, reason: &str) -> Answered<()> {
    find(face, name).await?.ok_or_else(|| no_schedule(name))?;
    let command = PauseSchedule { name: named(name), reason: reason.into() };
    ask(face, ScheduleCommand::Pause(command)).await?;
    Ok(())
}

async fn resume_one(face: &Face, name: &str) -> Answered<()> {
    let found = find(face, name).await?.filter(|schedule| schedule.paused.is_some());
    found.ok_or_else(|| no_schedule(name))?;
    ask(face, ScheduleCommand::Resume(named(name))).await?;
    Ok(())
}

async fn pause(State(face): State<Face>, At(name): At<String>, params: Params) -> Answered<Empty> {
    pause_one(&face, &name, params.text("reason")).await?;
    Ok(Empty)
}

async fn resume(State(face): State<Face>, At(name): At<String>) -> Answered<Empty> {
    resume_one(&face, &name).await?;
    Ok(Empty)
}

async fn pause_many(
    State(face): State<Face>,
    Body(names): Body<Vec<String>>,
) -> Answered<impl IntoResponse> {
    check_count(&names)?;
    let mut bulk = BulkResponse::default();
    for name in names {
        let paused = pause_one(&face, &name, "").await;
        bulk.add(&name, paused.map(|()| name.clone()));
    }
    Ok(Shown(bulk))
}

async fn resume_many(
    State(face): State<Face>,
    Body(names): Body<Vec<String>>,
) -> Answered<impl IntoResponse> {
    check_count(&names)?;
    let mut bulk = BulkResponse::default();
    for name in names {
        let resumed = resume_one(&face, &name).await;
        bulk.add(&name, resumed.map(|()| name.clone()));
    }
    Ok(Shown(bulk))
}

fn check_count(names: &[String]) -> Answered<()> {
    if names.len() <= BULK_ITEMS_MAX {
        return Ok(());
    }
    let sentence = format!("Cannot process more than {BULK_ITEMS_MAX} schedules");
    Err(Failure::validation(vec![sentence]))
}

async fn next_times(State(face): State<Face>, params: Params) -> Answered<impl IntoResponse> {
    let schedule = WorkflowSchedule {
        cron_expression: Some(params.required("cronExpression")?.to_owned()),
        zone_id: params.find("zoneId").map(str::to_owned),
        schedule_start_time: params.number("scheduleStartTime")?,
        schedule_end_time: params.number("scheduleEndTime")?,
        ..WorkflowSchedule::default()
    };
    let count = params.count("limit", NEXT_MAX)?.min(NEXT_MAX);
    let times = face.gateway.next_times(&schedule.times(), None, count).await;
    let times = times.map_err(Failure::from).map_err(|failure| {
        if failure.is_invalid() { Failure::invalid("Invalid cron expression") } else { failure }
    })?;
    Ok(Shown(times))
}

/// A run of a schedule on this wire.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Execution {
    execution_id: String,
    schedule_name: String,
    scheduled_time: u64,
    execution_time: u64,
    workflow_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_workflow_request: Option<Box<RawValue>>,
    state: &'static str,
    zone_id: String,
}

impl Execution {
    /// What was started or failed; what was skipped is none.
    fn of(schedule: &Schedule, run: &Run) -> Option<Execution> {
        let (workflow_id, reason, state) = match &run.outcome {
            RunOutcome::Started(key) => (Some(id_of(*key)), None, "EXECUTED"),
            RunOutcome::Failed(why) => (None, Some(why.to_string()), "FAILED"),
            RunOutcome::Skipped(..) => return None,
        };
        let shown = WorkflowSchedule::shown(schedule);
        Some(Execution {
            execution_id: format!("{}-{}", id_of(schedule.key), run.scheduled_for_ms),
            schedule_name: schedule.name.name.to_string(),
            scheduled_time: run.scheduled_for_ms,
            execution_time: run.at_ms,
            workflow_name: workflow_of(schedule),
            workflow_id,
            reason,
            start_workflow_request: shown.start_workflow_request,
            state,
            zone_id: shown.zone_id.unwrap_or_default(),
        })
    }

    fn field(&self, name: &str) -> Option<String> {
        Some(match name {
            "executionId" => self.execution_id.clone(),
            "scheduleName" => self.schedule_name.clone(),
            "workflowName" | "workflowType" => self.workflow_name.clone(),
            "workflowId" => self.workflow_id.clone().unwrap_or_default(),
            "state" | "status" => self.state.to_owned(),
            "scheduledTime" | "startTime" => self.scheduled_time.to_string(),
            "executionTime" | "endTime" => self.execution_time.to_string(),
            _ => return None,
        })
    }
}

/// The last runs of every schedule, the newest first.
async fn executions(State(face): State<Face>, params: Params) -> Answered<impl IntoResponse> {
    let conditions = Conditions::parse(params.text("query"))?;
    let text = params.find("freeText").filter(|text| *text != "*").unwrap_or_default();
    let (start, size) = (params.count("start", 0)?, params.count("size", 100)?);
    let schedules = all(&face).await?;
    let runs = schedules
        .iter()
        .flat_map(|schedule| schedule.runs.iter().filter_map(|run| Execution::of(schedule, run)));
    let mut found: Vec<Execution> = runs
        .filter(|run| conditions.hold(|name| run.field(name)))
        .filter(|run| run.schedule_name.contains(text) || run.workflow_name.contains(text))
        .collect();
    found.sort_by_key(|run| Reverse(run.scheduled_time));
    sort_as_asked(&mut found, &params);
    let total_hits = u64::try_from(found.len()).unwrap_or(u64::MAX);
    let results = found.into_iter().skip(start).take(size).collect::<Vec<_>>();
    Ok(Shown(SearchResult { total_hits, results }))
}

/// Runs are records of the log: none waits to be written elsewhere.
async fn requeue() -> impl IntoResponse {
    Shown(json!({ "recordIds.size": 0, "sampleIds": [] }))
}

/// What is said when all have been paused, or go on. Clients read it as an object.
fn done() -> Shown<serde_json::Value> {
    Shown(json!({ "status": "done" }))
}

/// Why a schedule is paused that was paused with all others: it goes on with them.
const ALL_PAUSED: &str = "All schedules are paused";

/// Pauses what runs. Schedules that are written later run.
async fn pause_all(State(face): State<Face>) -> Answered<impl IntoResponse> {
    for schedule in all(&face).await?.into_iter().filter(|it| it.paused.is_none()) {
        let command = PauseSchedule { name: schedule.name, reason: ALL_PAUSED.into() };
        passing(ask(&face, ScheduleCommand::Pause(command)).await)?;
    }
    Ok(done())
}

/// Lets go on what was paused with all others; what was paused by itself stays so.
async fn resume_all(State(face): State<Face>) -> Answered<impl IntoResponse> {
    for schedule in all(&face).await? {
        if schedule.paused.as_deref() == Some(ALL_PAUSED) {
            passing(ask(&face, ScheduleCommand::Resume(schedule.name)).await)?;
        }
    }
    Ok(done())
}

/// One that was deleted in between needs nothing.
fn passing(answered: Answered<Answer>) -> Answered<()> {
    match answered {
        Err(failure) if failure.is_missing() => Ok(()),
        answered => answered.map(drop),
    }
}
