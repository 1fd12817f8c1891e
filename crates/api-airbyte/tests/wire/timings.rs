//! When connections sync by themselves.

use serde_json::{Value, json};
use windlass_gateway::request::Schedule;
use windlass_record::bound::Bounds;
use windlass_record::command::Command;
use windlass_record::schedule::ScheduleName;

use crate::bench::{Bench, TENANT, payload, text, write};

async fn schedule(bench: &Bench, connection: &str) -> Option<Box<Schedule>> {
    let name = ScheduleName { tenant: TENANT.into(), name: format!("airbyte.{connection}").into() };
    bench.gateway().schedule(name).await.unwrap()
}

/// As many schedules as there may be, of somebody else.
async fn schedule_all_there_may_be(bench: &Bench) {
    use windlass_record::schedule::{
        CatchUp, Overlap, PutPause, PutSchedule, ScheduleAction, ScheduleCommand, ScheduleSettings,
        ScheduleTime, ScheduleTimes,
    };
    let time = ScheduleTime { expression: "0 0 0 1 1 *".into(), zone: "UTC".into() };
    let settings = ScheduleSettings {
        owner: "".into(),
        spec: "".into(),
        times: ScheduleTimes { expressions: vec![time], ..ScheduleTimes::default() },
        overlap: Overlap::Skip,
        catch_up: CatchUp::One,
        action: ScheduleAction::Workflow { request: "{}".into() },
    };
    let mut puts = tokio::task::JoinSet::new();
    for number in 0..Bounds::default().schedules_max {
        if puts.len() >= 1_000 {
            puts.join_next().await.unwrap().unwrap();
        }
        let name = format!("s{number}").into();
        let put = PutSchedule {
            name: ScheduleName { tenant: "other".into(), name },
            expected_version: None,
            settings: settings.clone(),
            pause: PutPause::AsItIs,
        };
        let command = Command::Schedule(ScheduleCommand::Put(Box::new(put)));
        let gateway = bench.gateway().clone();
        puts.spawn(async move { gateway.command(command).await.map(|_| ()).unwrap() });
    }
    puts.join_all().await;
}

/// From when its interval counts.
fn anchor_ms(schedule: &Schedule) -> u64 {
    let spec: Value = serde_json::from_str(&schedule.settings.spec).unwrap();
    spec["anchorMs"].as_u64().unwrap()
}

fn cron(expression: &str) -> Value {
    json!({ "schedule": { "scheduleType": "cron", "cronExpression": expression } })
}

fn every(units: u64, unit: &str) -> Value {
    json!({ "schedule": { "scheduleType": "basic", "units": units, "timeUnit": unit } })
}

#[tokio::test]
async fn cron_is_a_schedule_of_the_engine() {
    let bench = Bench::start().await;
    let id = text(&bench.connect(cron("0 30 6 ? * 2-6 Europe/Berlin")).await["connectionId"]);
    let kept = schedule(&bench, &id).await.unwrap();
    assert_eq!(&*kept.settings.owner, "airbyte");
    let time = &kept.settings.times.expressions[0];
    assert_eq!((&*time.expression, &*time.zone), ("0 30 6 * * 1,2,3,4,5", "Europe/Berlin"));
    assert!(kept.next_due_ms.is_some() && kept.paused.is_none());

    let path = format!("/connections/{id}");
    bench.patch(&path, json!({ "status": "inactive" })).await.shown();
    assert!(schedule(&bench, &id).await.unwrap().paused.is_some());
    bench.patch(&path, json!({ "status": "active" })).await.shown();
    assert!(schedule(&bench, &id).await.unwrap().paused.is_none());
    bench.patch(&path, json!({ "schedule": { "scheduleType": "manual" } })).await.shown();
    assert!(schedule(&bench, &id).await.is_none());
    bench.patch(&path, cron("0 0 0 * * ?")).await.shown();
    assert!(schedule(&bench, &id).await.is_some());
    bench.delete(&path).await.gone();
    assert!(schedule(&bench, &id).await.is_none());
}

#[tokio::test]
async fn of_changes_at_once_the_schedule_has_the_last_one() {
    let bench = Bench::start().await;
    let id = text(&bench.connect(every(1, "hours")).await["connectionId"]);
    let path = format!("/connections/{id}");
    for round in 0..20 {
        let change = |units: u64| bench.patch(&path, every(units, "hours"));
        let at = 10 * (round + 1);
        let all = tokio::join!(change(at), change(at + 1), change(at + 2), change(at + 3));
        for answer in [all.0, all.1, all.2, all.3] {
            answer.shown();
        }
        let (_, kept) = bench.document("airbyte.connection", &id).await.unwrap();
        let schedule = schedule(&bench, &id).await.unwrap();
        let spec: Value = serde_json::from_str(&schedule.settings.spec).unwrap();
        let hours = kept["schedule"]["units"].as_u64().unwrap();
        assert_eq!(spec["intervalMs"], hours * 3_600_000, "round {round}");
    }
}

#[tokio::test]
async fn a_cron_expression_has_a_bound() {
    let bench = Bench::start().await;
    let id = text(&bench.connect(cron("0 0 0 * * ?")).await["connectionId"]);
    let path = format!("/connections/{id}");
    let minutes = |count: usize| format!("0 {} * * * ?", vec!["1"; count].join(","));
    bench.patch(&path, cron(&minutes(400))).await.shown();
    let said = bench.patch(&path, cron(&minutes(500))).await.fails(400, "bad-request");
    assert_eq!(said, "The cronExpression is over 1000 bytes.");
}

#[tokio::test]
async fn a_connection_whose_schedule_is_refused_is_not_made() {
    let bench = Bench::start().await;
    let made = bench.connect(json!({})).await;
    schedule_all_there_may_be(&bench).await;
    let mut body = cron("0 0 0 * * ?");
    body["sourceId"] = made["sourceId"].clone();
    body["destinationId"] = made["destinationId"].clone();
    let refused = bench.post("/connections", body).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert_eq!(bench.get("/connections").await.shown()["data"], json!([made]));
}

#[tokio::test]
async fn cron_makes_jobs_when_its_time_comes() {
    let bench = Bench::start().await;
    let id = text(&bench.connect(cron("0 0 0 1 1 ?")).await["connectionId"]);
    let name = ScheduleName { tenant: TENANT.into(), name: format!("airbyte.{id}").into() };
    let run = windlass_record::schedule::ScheduleCommand::RunNow(name);
    bench.gateway().command(Command::Schedule(run)).await.unwrap();
    let job = bench.take("airbyte.sync").await;
    let payload = payload(&job);
    assert_eq!((&payload["connectionId"], &payload["scheduled"]), (&json!(id), &json!(true)));
    assert_eq!(job.priority, 0);
    let listed = bench.get(&format!("/jobs?connectionId={id}")).await.shown();
    assert_eq!(listed["data"][0]["status"], "running");
    let body = json!({ "connectionId": id, "jobType": "sync" });
    bench.post("/jobs", body).await.fails(409, "try-again-later");
}

#[tokio::test]
async fn an_interval_begins_at_once_and_counts_from_the_run_before() {
    let mut bench = Bench::start().await;
    let made = bench.connect(every(2, "hours")).await;
    assert_eq!(
        made["schedule"],
        json!({ "scheduleType": "basic", "basicTiming": "Every 2 HOURS" })
    );
    let id = text(&made["connectionId"]);
    let job = bench.take("airbyte.sync").await;
    assert_eq!(payload(&job)["scheduled"], true);
    bench.complete(&job, json!({}), Vec::new()).await;
    let first = schedule(&bench, &id).await.unwrap();
    let between = first.next_due_ms.unwrap().abs_diff(job.created_ms + 7_200_000);
    assert!(between < 2_000, "{between}");

    // What changes nothing about the times leaves them alone, a restart too.
    let path = format!("/connections/{id}");
    bench.patch(&path, json!({ "name": "other" })).await.shown();
    bench.again().await;
    let same = schedule(&bench, &id).await.unwrap();
    assert_eq!((same.next_due_ms, same.version), (first.next_due_ms, first.version));
    let jobs = bench.get("/jobs").await.shown();
    assert_eq!(jobs["data"].as_array().map(Vec::len), Some(1), "{jobs}");

    // A job that is asked for begins the interval anew.
    let asked = bench.sync(&id).await;
    let moved = schedule(&bench, &id).await.unwrap();
    assert!(anchor_ms(&moved) > anchor_ms(&first), "{moved:?}");

    // A pause that is shorter than the interval starts nothing when it ends.
    bench.delete(&format!("/jobs/{}", asked["jobId"])).await.shown();
    bench.patch(&path, json!({ "status": "inactive" })).await.shown();
    bench.patch(&path, json!({ "status": "active" })).await.shown();
    let resumed = schedule(&bench, &id).await.unwrap();
    assert!(resumed.next_due_ms.unwrap().abs_diff(moved.next_due_ms.unwrap()) < 2_000);
    let jobs = bench.get("/jobs").await.shown();
    assert_eq!(jobs["data"].as_array().map(Vec::len), Some(2), "{jobs}");
}

#[tokio::test]
async fn a_start_brings_schedules_in_line_with_their_connections() {
    let mut bench = Bench::start().await;
    let made = bench.connect(cron("0 0 0 * * ?")).await;
    let id = text(&made["connectionId"]);
    let mut ids = Vec::new();
    for _ in 0..4 {
        let mut body = cron("0 0 0 * * ?");
        body["sourceId"] = made["sourceId"].clone();
        body["destinationId"] = made["destinationId"].clone();
        ids.push(text(&bench.post("/connections", body).await.shown()["connectionId"]));
    }
    let [same, changed, manual, gone] = ids.try_into().unwrap();
    let before = schedule(&bench, &same).await.unwrap().version;
    for (id, timing) in [
        (&changed, cron("0 0 1 * * ?")["schedule"].clone()),
        (&manual, json!({ "scheduleType": "manual" })),
    ] {
        let (_, mut kept) = bench.document("airbyte.connection", id).await.unwrap();
        kept["schedule"] = timing;
        bench.put_documents(vec![write("airbyte.connection", id, kept)]).await;
    }
    let mut forget = write("airbyte.connection", &gone, json!({}));
    forget.bytes = None;
    bench.put_documents(vec![forget]).await;
    let delete = |name: String| {
        let name = ScheduleName { tenant: TENANT.into(), name: name.into() };
        let command = windlass_record::schedule::DeleteSchedule { name, expected_version: None };
        let command = windlass_record::schedule::ScheduleCommand::Delete(command);
        Command::Schedule(command)
    };
    bench.gateway().command(delete(format!("airbyte.{id}"))).await.unwrap();
    bench.again().await;
    assert!(schedule(&bench, &id).await.is_some(), "it was lost");
    assert_eq!(schedule(&bench, &same).await.unwrap().version, before);
    let changed = schedule(&bench, &changed).await.unwrap();
    assert_eq!(&*changed.settings.times.expressions[0].expression, "0 0 1 * * *");
    assert!(schedule(&bench, &manual).await.is_none());
    assert!(schedule(&bench, &gone).await.is_none());
}
