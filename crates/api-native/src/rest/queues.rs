//! Queues, limit keys, and the installation.

use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::routing::{get, post, put};
use windlass_gateway::Gateway;
use windlass_record::command::{Command, ConfigureLimit, ConfigureQueue, PauseQueue, QueueName};

use super::extract::{Asked, Body, NamePath, Shown};
use super::input::{LimitsQuery, NewLimit, NewQueueSettings, TenantQuery, tenant, text};
use super::jobs::PageLimit;
use super::operation::{At, Operation};
use super::output::{LimitKeyDetail, LimitPage, QueueDetail, QueueList, Status};
use super::problem::Answered;
use super::schema::{MaybeName, Name};
use crate::error::limit_not_found;
use crate::limit::page;

/// The operations of this file.
pub(super) fn operations() -> Vec<Operation> {
    let at = |method, path, id| At { method, path, id, tag: "queues" };
    vec![
        Operation::new(at(Method::GET, "/queues", "listQueues"), "Lists queues.", get(list))
            .tenant()
            .answer::<QueueList>(200, "The queues of the tenant."),
        Operation::new(
            at(Method::PUT, "/queues/{queue}", "configureQueue"),
            "Gives a queue new settings; it is made if it does not exist.",
            put(configure),
        )
        .path::<Name>("queue", "The queue.")
        .tenant()
        .body::<NewQueueSettings>(false)
        .done("They hold.")
        .problems(&[429]),
        Operation::new(
            at(Method::POST, "/queues/{queue}/pause", "pauseQueue"),
            "Stops hand-out.",
            post(pause),
        )
        .path::<Name>("queue", "The queue.")
        .tenant()
        .done("No job of it is handed out.")
        .problems(&[404]),
        Operation::new(
            at(Method::POST, "/queues/{queue}/resume", "resumeQueue"),
            "Resumes hand-out.",
            post(resume),
        )
        .path::<Name>("queue", "The queue.")
        .tenant()
        .done("Its jobs are handed out.")
        .problems(&[404]),
        Operation::new(
            at(Method::PUT, "/limits/{name}", "configureLimit"),
            "Gives a limit key new settings.",
            put(limit),
        )
        .path::<Name>("name", "The limit key.")
        .tenant()
        .body::<NewLimit>(false)
        .done("They hold.")
        .problems(&[429]),
        Operation::new(
            at(Method::GET, "/limits/{name}", "getLimit"),
            "Shows a limit key, and how much of it is used.",
            get(show_limit),
        )
        .path::<Name>("name", "The limit key.")
        .tenant()
        .answer::<LimitKeyDetail>(200, "The limit key.")
        .problems(&[404]),
        Operation::new(at(Method::GET, "/limits", "listLimits"), "Lists limit keys.", get(limits))
            .tenant()
            .query::<MaybeName>("after", "Names after this one.")
            .query::<PageLimit>("limit", "Limit keys of a page; 100 when absent.")
            .answer::<LimitPage>(200, "A page."),
        Operation::new(
            At { method: Method::GET, path: "/status", id: "getStatus", tag: "installation" },
            "Says how the installation is.",
            get(status),
        )
        .answer::<Status>(200, "It is up."),
    ]
}

async fn list(
    State(gateway): State<Gateway>,
    Asked(query): Asked<TenantQuery>,
) -> Answered<Shown<QueueList>> {
    let queues = gateway.queues(Some(tenant(query.tenant)?)).await?;
    Ok(Shown(QueueList { queues: queues.iter().map(QueueDetail::from).collect() }))
}

async fn configure(
    State(gateway): State<Gateway>,
    NamePath(name): NamePath,
    Asked(query): Asked<TenantQuery>,
    Body(settings): Body<NewQueueSettings>,
) -> Answered<StatusCode> {
    let queue = QueueName { tenant: tenant(query.tenant)?.into(), queue: name.into() };
    let settings = settings.settings();
    let command = ConfigureQueue { queue, settings, seed_only: false };
    gateway.command(Command::ConfigureQueue(command)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn pause(
    State(gateway): State<Gateway>,
    NamePath(name): NamePath,
    Asked(query): Asked<TenantQuery>,
) -> Answered<StatusCode> {
    let queue = QueueName { tenant: tenant(query.tenant)?.into(), queue: name.into() };
    gateway.command(Command::PauseQueue(PauseQueue { queue, paused: true })).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn resume(
    State(gateway): State<Gateway>,
    NamePath(name): NamePath,
    Asked(query): Asked<TenantQuery>,
) -> Answered<StatusCode> {
    let queue = QueueName { tenant: tenant(query.tenant)?.into(), queue: name.into() };
    gateway.command(Command::PauseQueue(PauseQueue { queue, paused: false })).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn limit(
    State(gateway): State<Gateway>,
    NamePath(name): NamePath,
    Asked(query): Asked<TenantQuery>,
    Body(settings): Body<NewLimit>,
) -> Answered<StatusCode> {
    let command = ConfigureLimit {
        tenant: tenant(query.tenant)?,
        name: name.into(),
        settings: settings.settings(),
    };
    gateway.command(Command::ConfigureLimit(command)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn show_limit(
    State(gateway): State<Gateway>,
    NamePath(name): NamePath,
    Asked(query): Asked<TenantQuery>,
) -> Answered<Shown<LimitKeyDetail>> {
    let found = gateway.limit_key(tenant(query.tenant)?, name.into()).await?;
    Ok(Shown(LimitKeyDetail::from(&found.ok_or_else(limit_not_found)?)))
}

async fn limits(
    State(gateway): State<Gateway>,
    Asked(query): Asked<LimitsQuery>,
) -> Answered<Shown<LimitPage>> {
    let (tenant, after) = (tenant(query.tenant)?, text("after", query.after)?);
    let (found, more) = gateway.limit_keys(tenant, after, page(query.limit.unwrap_or(0))?).await?;
    let next = found.last().filter(|_| more).map(|last| String::from(&*last.name));
    Ok(Shown(LimitPage { limits: found.iter().map(LimitKeyDetail::from).collect(), next }))
}

async fn status(State(gateway): State<Gateway>) -> Answered<Shown<Status>> {
    let view = gateway.status().await?;
    Ok(Shown(Status::of(&gateway, &view)))
}
