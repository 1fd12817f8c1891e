//! Random processes on random paths, stopped at every step: the state rebuilt from the log, and from
//! a checkpoint with the log's tail, is the same in all of it, and no token is lost on the way.

use windlass_record::bound::Bounds;
use windlass_record::command::{
    Bytes, Command, CompleteJob, CompleteListener, FailJob, Lease, ListenerSays, ResolveIncident,
    ThrowError, UpdateJob,
};
use windlass_record::flow::{
    ActivateInstruction, BroadcastSignal, CancelInstance, CreateInstance, DefinitionKind,
    DeleteResource, DeployResources, FlowCommand, Key, MigrateInstance, ModifyInstance,
    MoveAncestor, MoveInstruction, ProcessReference, PublishMessage, SetVariables,
    TerminateInstruction, UpdateUserTask, UserTaskAction, UserTaskCorrections,
};
use windlass_record::id::PartitionId;
use windlass_record::rejection::Rejection;

use super::digest::{assert_same, digest};
use super::flows::TENANT;
use super::random::{Random, seeds};
use super::store::{Store, Writing, replay};
use crate::Engine;
use crate::lifecycle::JobState;
use crate::verb::check::{Check, Shelf};

/// Seeds in every test run, and actions of each. More: `WINDLASS_SEEDS=2000`.
const SEEDS: u64 = 64;
const ACTIONS: u32 = 140;
/// Files that one seed deploys, beside those that others call: what has many runs deep, and all of
/// them together run everything.
const FILES: usize = 14;
const CALLED: [&str; 3] = ["call-child.bpmn", "error-call-child.bpmn", "decision-unique.dmn"];
/// Actions between comparisons of all state.
const COMPARED_EVERY: u32 = 4;

/// The processes of the black-box suite.
fn resources() -> Vec<(Box<str>, Bytes)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/zeebe/processes");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the processes are there")
        .map(|entry| entry.expect("it can be listed").path())
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            (name.into(), std::fs::read(&path).expect("it can be read").into())
        })
        .collect()
}

struct World {
    random: Random,
    check: Check,
    names: Vec<String>,
    files: Vec<(Box<str>, Bytes)>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        let all = resources();
        let mut files: Vec<_> =
            all.iter().filter(|(name, _)| CALLED.contains(&&**name)).cloned().collect();
        for _ in 0..FILES {
            files.push(random.of(&all).clone());
        }
        let mut world = World { random, check: Check::new(), names: Vec::new(), files };
        for number in 0..world.files.len() {
            world.deploy(number, false);
        }
        world
    }

    /// Deploys a file; perhaps as a new version of it.
    fn deploy(&mut self, number: usize, is_new: bool) {
        let (name, bytes) = self.files[number].clone();
        let mut bytes = bytes.to_vec();
        if is_new && name.ends_with(".bpmn") {
            bytes.extend_from_slice(format!("<!-- {} -->", self.check.now_ms).as_bytes());
        }
        let command =
            DeployResources { tenant: TENANT.into(), resources: vec![(name, bytes.into())] };
        // Some are there to be refused.
        let _refused = self.check.give(Command::Flow(FlowCommand::DeployResources(command)));
        let names = self
            .check
            .engine
            .state()
            .flow()
            .definitions()
            .filter(|(_, definition)| definition.kind == DefinitionKind::Process)
            .map(|(_, definition)| definition.id.to_string());
        self.names.extend(names);
        self.names.sort();
        self.names.dedup();
    }

    fn variables(&mut self) -> Box<[u8]> {
        let n = self.random.below(5);
        let flag = self.random.one_in(2);
        let items = ["[]", "[1,2,3]", "[\"a\"]", "null", "7"];
        let items = self.random.of(&items);
        format!(
            r#"{{"a":{n},"b":"x{n}","x":{n},"key":"k{n}","flag":{flag},"items":{items},"n":{n},"amount":{n}}}"#
        )
        .into_bytes()
        .into()
    }

    /// One thing that somebody does. Most are refused, and that must change nothing.
    fn act(&mut self) {
        let command = match self.random.below(35) {
            0..=4 => FlowCommand::CreateInstance(CreateInstance {
                tenant: TENANT.into(),
                process: ProcessReference::Latest(self.random.of(&self.names).as_str().into()),
                variables: self.variables().into(),
                start_at: Vec::new(),
                business_id: "".into(),
                tags: Vec::new(),
                awaited: self.random.one_in(2),
            }),
            5..=13 => return self.work(),
            14..=16 => self.message(),
            17 => FlowCommand::BroadcastSignal(BroadcastSignal {
                tenant: TENANT.into(),
                name: self.topic().unwrap_or_default(),
                variables: self.variables().into(),
            }),
            18..=20 => {
                let ms = *self.random.of(&[1, 900, 1_100, 11_000, 70_000]);
                return self.check.pass(ms);
            }
            21 => return self.resolve(),
            22 => FlowCommand::SetVariables(SetVariables {
                scope: self.some_element(),
                variables: self.variables().into(),
                local: self.random.one_in(2),
            }),
            23 => FlowCommand::CancelInstance(CancelInstance { key: self.some_instance() }),
            24 => match self.some_user_task() {
                Some(key) => {
                    let (action, name) = (self.user_action(), "".into());
                    FlowCommand::UpdateUserTask(UpdateUserTask { key, action, name })
                }
                None => return,
            },
            25..=26 => self.modify(),
            27..=28 => self.migrate(),
            29 => FlowCommand::DeleteResource(DeleteResource { key: self.some_definition() }),
            30..=31 => {
                let number = self.random.below(self.files.len() as u64) as usize;
                return self.deploy(number, true);
            }
            32 => return self.update(),
            _ => return self.some_steps(),
        };
        let _refused = self.check.give(Command::Flow(command));
    }

    fn user_action(&mut self) -> UserTaskAction {
        match self.random.below(3) {
            0 => UserTaskAction::Complete(self.variables().into()),
            1 => UserTaskAction::Assign {
                assignee: (*self.random.of(&["", "ann", "bob"])).into(),
                replace: self.random.one_in(2),
            },
            _ => UserTaskAction::Change {
                candidate_groups: Some(r#"["a"]"#.into()),
                candidate_users: None,
                due_date: self.random.one_in(2).then(|| "".into()),
                follow_up_date: None,
                priority: Some(self.random.below(100) as u32),
            },
        }
    }

    /// An id of an element of an instance's process.
    fn some_node(&mut self, definition: Key) -> Box<str> {
        let flow = self.check.engine.state().flow();
        let Some(definition) = flow.definition(definition) else { return "".into() };
        let ids: Vec<Box<str>> = definition.nodes.iter().map(|(id, ..)| (**id).into()).collect();
        if ids.is_empty() { "".into() } else { self.random.of(&ids).clone() }
    }

    fn modify(&mut self) -> FlowCommand {
        let key = self.some_instance();
        let flow = self.check.engine.state().flow();
        let definition = flow.element(key).map_or(Key::NONE, |element| element.definition);
        let mut members: Vec<Key> = flow
            .elements()
            .filter(|(_, element)| element.instance == key)
            .map(|(key, _)| key)
            .collect();
        members.sort_unstable();
        let activate = (0..self.random.below(3))
            .map(|_| ActivateInstruction {
                element_id: self.some_node(definition),
                ancestor: Key::NONE,
                variables: Vec::new(),
            })
            .collect();
        let terminate = (0..self.random.below(3))
            .filter(|_| !members.is_empty())
            .map(|_| TerminateInstruction::Instance(*self.random.of(&members)))
            .collect();
        let scopes = [
            MoveAncestor::Instance(Key::NONE),
            MoveAncestor::SourceParent,
            MoveAncestor::SourceHierarchy,
        ];
        let moves = (0..self.random.below(2))
            .map(|_| MoveInstruction {
                source: TerminateInstruction::Element(self.some_node(definition)),
                target_id: self.some_node(definition),
                ancestor: *self.random.of(&scopes),
                variables: Vec::new(),
            })
            .collect();
        FlowCommand::ModifyInstance(ModifyInstance { key, activate, terminate, moves })
    }

    /// To another version, each element to itself; or anywhere.
    fn migrate(&mut self) -> FlowCommand {
        let key = self.some_instance();
        let flow = self.check.engine.state().flow();
        let source = flow.element(key).and_then(|element| flow.definition(element.definition));
        let Some(source) = source else {
            return FlowCommand::CancelInstance(CancelInstance { key });
        };
        let mappings =
            source.nodes.iter().skip(1).map(|(id, ..)| ((**id).into(), (**id).into())).collect();
        let versions = flow.all_versions(TENANT, DefinitionKind::Process, &source.id).to_vec();
        let definition = if self.random.one_in(5) || versions.is_empty() {
            self.some_definition()
        } else {
            *self.random.of(&versions)
        };
        FlowCommand::MigrateInstance(MigrateInstance { key, definition, mappings })
    }

    fn some_definition(&mut self) -> Key {
        let mut keys: Vec<Key> =
            self.check.engine.state().flow().definitions().map(|(key, _)| key).collect();
        keys.sort_unstable();
        if keys.is_empty() { Key::NONE } else { *self.random.of(&keys) }
    }

    /// New retries and another priority for some job.
    fn update(&mut self) {
        let jobs: Vec<Key> =
            self.check.engine.state().jobs().iter().map(|(_, job)| job.key).collect();
        if jobs.is_empty() {
            return;
        }
        let update = UpdateJob {
            key: *self.random.of(&jobs),
            activation: None,
            retries: Some(self.random.below(3) as i32),
            priority: Some(self.random.below(3) as i32),
            lease_ms: None,
            tenant: None,
        };
        let _refused = self.check.give(Command::UpdateJob(update));
    }

    fn some_steps(&mut self) {
        let context = self.check.context();
        for _ in 0..self.random.below(20) {
            self.check.engine.go_on(context, 1, &mut self.check.shelf);
        }
        self.check.check_invariants();
    }

    fn message(&mut self) -> FlowCommand {
        let n = self.random.below(5);
        let key = self.random.of(&["", "1"]).to_string();
        FlowCommand::PublishMessage(PublishMessage {
            tenant: TENANT.into(),
            name: self.topic().unwrap_or_default(),
            correlation_key: if key.is_empty() { format!("k{n}").into() } else { key.into() },
            message_id: if self.random.one_in(3) { "id".into() } else { "".into() },
            time_to_live_ms: *self.random.of(&[0, 500, 100_000]),
            variables: self.variables().into(),
            must_correlate: self.random.one_in(4),
        })
    }

    /// The name of a message or signal that somebody waits for.
    fn topic(&mut self) -> Option<Box<str>> {
        let topics: Vec<Box<str>> =
            self.check.engine.state().flow().topic_names().map(Into::into).collect();
        (!topics.is_empty()).then(|| self.random.of(&topics).clone())
    }

    fn some_element(&mut self) -> Key {
        let mut keys: Vec<Key> =
            self.check.engine.state().flow().elements().map(|(key, _)| key).collect();
        keys.sort_unstable();
        if keys.is_empty() { Key::NONE } else { *self.random.of(&keys) }
    }

    fn some_instance(&mut self) -> Key {
        let element = self.some_element();
        let flow = self.check.engine.state().flow();
        flow.element(element).map_or(Key::NONE, |element| element.instance)
    }

    fn some_user_task(&mut self) -> Option<Key> {
        let flow = self.check.engine.state().flow();
        let mut keys: Vec<Key> =
            flow.elements().filter_map(|(_, element)| element.user_task).collect();
        keys.sort_unstable();
        (!keys.is_empty()).then(|| *self.random.of(&keys))
    }

    /// A worker takes a job and says something about it.
    fn work(&mut self) {
        let mut types: Vec<String> = self
            .check
            .engine
            .state()
            .queues()
            .filter(|(id, _)| self.check.engine.state().eligible_jobs(*id, true) > 0)
            .filter_map(|(_, queue)| queue.name.strip_prefix("zeebe/").map(str::to_owned))
            .collect();
        types.sort();
        if types.is_empty() {
            return;
        }
        let job_type = self.random.of(&types).clone();
        for job in self.check.work(&job_type, 1) {
            let lease = Lease { key: job, activation: None };
            // The listener of a user task brings none.
            let is_listener = self.check.engine.state().flow().facts_of_job(job);
            let is_listener = is_listener.is_some_and(|facts| facts.user_task.is_some());
            let quiet = is_listener && !self.random.one_in(8);
            let variables = if quiet { Bytes::default() } else { self.variables().into() };
            let command = match self.random.below(10) {
                0..=2 if is_listener => Command::CompleteListener(CompleteListener {
                    lease,
                    result: variables,
                    says: self.listener_says(),
                }),
                0..=6 => Command::CompleteJob(CompleteJob {
                    lease,
                    result: variables,
                    documents: Vec::new(),
                }),
                7 => Command::FailJob(FailJob {
                    lease,
                    message: "no".into(),
                    retries: Some(self.random.below(2) as i32),
                    backoff_ms: Some(self.random.below(3_000)),
                    progressed: false,
                    kind: Default::default(),
                    variables,
                }),
                _ => Command::ThrowError(ThrowError {
                    lease,
                    code: (*self.random.of(&["BROKEN", "CHILD-BROKEN", "oops", ""])).into(),
                    message: "".into(),
                    variables,
                }),
            };
            let _a_listener_throws_nothing = self.check.give(command);
        }
    }

    fn listener_says(&mut self) -> ListenerSays {
        if self.random.one_in(2) {
            return ListenerSays::Denied("no".into());
        }
        ListenerSays::Corrected(Box::new(UserTaskCorrections {
            assignee: self.random.one_in(3).then(|| "eve".into()),
            due_date: self.random.one_in(2).then(|| "2030-01-01T00:00:00Z".into()),
            priority: Some(self.random.below(102) as u32),
            ..UserTaskCorrections::default()
        }))
    }

    fn resolve(&mut self) {
        let state = self.check.engine.state();
        let mut keys: Vec<Key> = state.flow().incidents().map(|(key, _)| key).collect();
        keys.extend(
            state
                .jobs()
                .iter()
                .filter(|(_, job)| job.state == JobState::Incident)
                .map(|(_, job)| job.key),
        );
        keys.sort_unstable();
        if keys.is_empty() {
            return;
        }
        let key = *self.random.of(&keys);
        let _gone = self.check.give(Command::UpdateJob(UpdateJob {
            key,
            activation: None,
            retries: Some(1),
            priority: None,
            lease_ms: None,
            tenant: None,
        }));
        let resolved = self.check.give(Command::ResolveIncident(ResolveIncident {
            key,
            retries: None,
            tenant: None,
        }));
        // The steps behind the update may have ended it.
        let is_gone = matches!(resolved, Err(Rejection::IncidentNotFound { .. }));
        assert!(resolved.is_ok() || is_gone, "{resolved:?}");
    }
}

#[test]
fn random_processes_stopped_at_every_step_replay_to_the_same_state() {
    seeds("random_processes", SEEDS, |seed| {
        let mut world = World::new(seed);
        let mut shelf = Shelf::default();
        let mut from_log = Engine::new(PartitionId::FIRST, Bounds::default());
        let mut logged = 0;
        let mut store = Store::default();
        let mut covered: Option<usize> = None;
        for action in 0..ACTIONS {
            world.act();
            let check = &mut world.check;
            replay(&mut from_log, &mut shelf, &check.shelf.log[logged..]);
            logged = check.shelf.log.len();
            if action % COMPARED_EVERY == 0 || action + 1 == ACTIONS {
                let live = digest(check.engine.state(), &check.shelf);
                assert_same("from the log", &live, &digest(from_log.state(), &shelf));
            }
            if action % 10 == 3 {
                // A checkpoint, written while things go on.
                check.engine.freeze(&mut Writing { store: &mut store, shelf: &check.shelf });
                let at = check.shelf.log.len();
                loop {
                    let sink = &mut Writing { store: &mut store, shelf: &check.shelf };
                    if check.engine.write_frozen(3, sink) {
                        break;
                    }
                    let context = check.context();
                    check.engine.go_on(context, 1, &mut check.shelf);
                    let sink = &mut Writing { store: &mut store, shelf: &check.shelf };
                    check.engine.write_early_images(sink);
                }
                store.commit();
                assert_eq!(store.checksum(), check.engine.checksum(), "the checksum of all images");
                covered = Some(at);
            }
            if let (Some(at), true) = (covered, action % 7 == 0) {
                let mut shelf = Shelf::default();
                let mut engine = store.load(Bounds::default(), &mut shelf);
                replay(&mut engine, &mut shelf, &world.check.shelf.log[at..]);
                let live = digest(world.check.engine.state(), &world.check.shelf);
                assert_same("from a checkpoint", &live, &digest(engine.state(), &shelf));
            }
        }
    });
}
