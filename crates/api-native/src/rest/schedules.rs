//! Schedules: what is run again and again. The entity tag is the version.

use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use windlass_gateway::Gateway;
use windlass_gateway::request::Answer;
use windlass_record::command::Command;
use windlass_record::schedule::{
    DeleteSchedule, PauseSchedule, PutSchedule, ScheduleAnswer, ScheduleCommand, ScheduleName,
};

use super::MISMATCH;
use super::documents::{expected_version, tag};
use super::extract::{Asked, Body, NamePath, Shown};
use super::input::{TenantQuery, tenant};
use super::jobs::PageLimit;
use super::operation::{At, Operation};
use super::problem::Answered;
use super::schedule::{
    NewSchedule, NextCount, NextQuery, NextTimes, RunAnswer, ScheduleDetail, ScheduleList,
    SchedulePause, SchedulePut, SchedulesQuery,
};
use super::schema::{Key, MaybeName, Name, Time};
use crate::error::ApiError;

/// The operations of this file.
pub(super) fn operations() -> Vec<Operation> {
    let at = |method, path, id| At { method, path, id, tag: "schedules" };
    let one = |operation: Operation| operation.path::<Name>("name", "Which one.").tenant();
    let if_match = "The version it must have, as in \"3\".";
    let if_none_match = "* when it must not exist yet.";
    let version = "^\"[0-9]{1,19}\"$";
    let mut operations = vec![
        Operation::new(
            at(Method::GET, "/schedules", "listSchedules"),
            "Lists schedules.",
            get(list),
        )
        .tenant()
        .query::<MaybeName>("prefix", "Names that begin so.")
        .query::<MaybeName>("after", "Names after this one.")
        .query::<MaybeName>("owner", "Those of this owner; all when absent.")
        .query::<PageLimit>("limit", "Schedules of a page; 100 when absent.")
        .answer::<ScheduleList>(200, "A page. It may be shorter than the limit and not the last."),
        Operation::new(
            at(Method::GET, "/schedules/next", "nextTimes"),
            "Gives the next times of an expression, without a schedule.",
            get(next),
        )
        .query::<String>("expression", "Cron with seconds, a macro, a calendar event, or a cycle.")
        .query::<String>("zone", "The zone; UTC when absent.")
        .query::<NextCount>("count", "How many; 5 when absent.")
        .query::<Time>("after_ms", "After this time; after now when absent.")
        .answer::<NextTimes>(200, "The times; fewer when there are no more."),
        one(Operation::new(
            at(Method::GET, "/schedules/{name}", "getSchedule"),
            "Shows a schedule and its last runs.",
            get(show),
        ))
        .answer::<ScheduleDetail>(200, "The schedule; the entity tag is its version.")
        .problems(&[404]),
        one(Operation::new(
            at(Method::PUT, "/schedules/{name}", "putSchedule"),
            "Makes a schedule, or replaces its settings.",
            put(write),
        ))
        .header("If-Match", if_match, version)
        .header("If-None-Match", if_none_match, "^[*]$")
        .body::<NewSchedule>(true)
        .answer::<SchedulePut>(200, "It holds.")
        .problems(&[412, 429]),
        one(Operation::new(
            at(Method::DELETE, "/schedules/{name}", "deleteSchedule"),
            "Deletes a schedule; a run under way goes on.",
            delete(remove),
        ))
        .header("If-Match", if_match, version)
        .done("It is gone.")
        .problems(&[404, 412]),
    ];
    operations.extend(steering());
    operations
}

fn steering() -> Vec<Operation> {
    let at = |path, id| At { method: Method::POST, path, id, tag: "schedules" };
    let one = |operation: Operation| operation.path::<Name>("name", "Which one.").tenant();
    vec![
        one(Operation::new(
            at("/schedules/{name}/pause", "pauseSchedule"),
            "Pauses a schedule.",
            post(pause),
        ))
        .body::<SchedulePause>(false)
        .done("Nothing is started on time.")
        .problems(&[404]),
        one(Operation::new(
            at("/schedules/{name}/resume", "resumeSchedule"),
            "Resumes a schedule; what was due meanwhile is not caught up.",
            post(resume),
        ))
        .done("It goes on.")
        .problems(&[404]),
        one(Operation::new(
            at("/schedules/{name}/run", "runSchedule"),
            "Runs a schedule now, beside its times, under its overlap policy.",
            post(run),
        ))
        .answer::<RunAnswer>(200, "What was done.")
        .problems(&[404, 429]),
    ]
}

async fn list(
    State(gateway): State<Gateway>,
    Asked(query): Asked<SchedulesQuery>,
) -> Answered<Shown<ScheduleList>> {
    let page = gateway.schedules(query.filter()?).await?;
    let schedules = page.schedules.into_iter().map(ScheduleDetail::from).collect();
    Ok(Shown(ScheduleList { schedules, next: page.next.map(String::from) }))
}

async fn next(
    State(gateway): State<Gateway>,
    Asked(query): Asked<NextQuery>,
) -> Answered<Shown<NextTimes>> {
    let (times, after_ms, count) = query.asked()?;
    Ok(Shown(NextTimes { times_ms: gateway.next_times(&times, after_ms, count).await? }))
}

async fn show(
    State(gateway): State<Gateway>,
    NamePath(name): NamePath,
    Asked(query): Asked<TenantQuery>,
) -> Answered<Response> {
    let schedule = gateway
        .schedule(named(name, query)?)
        .await?
        .ok_or_else(|| ApiError::not_found("schedule-not-found", "no schedule has this name"))?;
    let version = schedule.version;
    let mut response = Shown(ScheduleDetail::from(*schedule)).into_response();
    response.headers_mut().insert(header::ETAG, tag(version));
    Ok(response)
}

async fn write(
    State(gateway): State<Gateway>,
    NamePath(name): NamePath,
    Asked(query): Asked<TenantQuery>,
    headers: HeaderMap,
    Body(schedule): Body<NewSchedule>,
) -> Answered<Response> {
    let name = named(name, query)?;
    let expected_version = expected_version(&headers)?;
    let (settings, pause) = schedule.settings()?;
    let command =
        ScheduleCommand::Put(Box::new(PutSchedule { name, expected_version, settings, pause }));
    let ScheduleAnswer::Put { schedule, version, next_due_ms } = give(&gateway, command).await?
    else {
        unreachable!("{MISMATCH}")
    };
    let put = SchedulePut { key: Key(schedule.raw()), version, next_due_ms };
    let mut response = Shown(put).into_response();
    response.headers_mut().insert(header::ETAG, tag(version));
    Ok(response)
}

async fn remove(
    State(gateway): State<Gateway>,
    NamePath(name): NamePath,
    Asked(query): Asked<TenantQuery>,
    headers: HeaderMap,
) -> Answered<StatusCode> {
    let name = named(name, query)?;
    let expected_version = expected_version(&headers)?;
    give(&gateway, ScheduleCommand::Delete(DeleteSchedule { name, expected_version })).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn pause(
    State(gateway): State<Gateway>,
    NamePath(name): NamePath,
    Asked(query): Asked<TenantQuery>,
    Body(pause): Body<SchedulePause>,
) -> Answered<StatusCode> {
    let name = named(name, query)?;
    let reason = pause.reason.unwrap_or_default().into();
    give(&gateway, ScheduleCommand::Pause(PauseSchedule { name, reason })).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn resume(
    State(gateway): State<Gateway>,
    NamePath(name): NamePath,
    Asked(query): Asked<TenantQuery>,
) -> Answered<StatusCode> {
    give(&gateway, ScheduleCommand::Resume(named(name, query)?)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn run(
    State(gateway): State<Gateway>,
    NamePath(name): NamePath,
    Asked(query): Asked<TenantQuery>,
) -> Answered<Shown<RunAnswer>> {
    let answer = give(&gateway, ScheduleCommand::RunNow(named(name, query)?)).await?;
    let Some(answer) = RunAnswer::of(answer) else { unreachable!("{MISMATCH}") };
    Ok(Shown(answer))
}

async fn give(gateway: &Gateway, command: ScheduleCommand) -> Answered<ScheduleAnswer> {
    let Answer::Schedule(answer) = gateway.command(Command::Schedule(command)).await? else {
        unreachable!("{MISMATCH}")
    };
    Ok(answer)
}

fn named(name: String, query: TenantQuery) -> Answered<ScheduleName> {
    Ok(ScheduleName { tenant: tenant(query.tenant)?, name: name.into() })
}
