//! The events of flows: one tag each below the tag that all of them share. The tables here are the
//! format: tags are never renumbered, and the order of fields never changes.

use std::borrow::Cow;

use super::{DecodeError, Decoder, Encoder};
use crate::flow::{
    DefinitionDeployed, DefinitionKind, ElementEntered, FlowEvent, FlowIncidentKind,
    InstanceStarted, JobRole, Key, MessagePublished, NodeName, SubscriptionKind,
    SubscriptionOpened, UserTaskCreated, UserTaskEvent, UserTaskTransitionStarted,
};

/// A value that stands in an event or an image.
pub trait Field<'a>: Sized {
    /// Appends it.
    fn encode(&self, out: &mut Encoder<'_>);
    /// Takes it.
    fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError>;
}

macro_rules! events {
    ($encode:ident $decode:ident $enum:ident $label:literal; $($tag:literal $variant:ident { $($field:ident),* })* ; $($whole_tag:literal $whole:ident)*) => {
        #[doc = concat!("Appends an ", $label, ".")]
        pub(in crate::codec) fn $encode(event: &$enum<'_>, out: &mut Encoder<'_>) {
            match event {
                $($enum::$variant { $($field),* } => {
                    out.u8($tag);
                    $($field.encode(out);)*
                })*
                $($enum::$whole(whole) => {
                    out.u8($whole_tag);
                    whole.encode(out);
                })*
            }
        }

        #[doc = concat!("Takes an ", $label, ".")]
        pub(in crate::codec) fn $decode<'a>(input: &mut Decoder<'a>) -> Result<$enum<'a>, DecodeError> {
            match input.u8()? {
                $($tag => Ok($enum::$variant { $($field: Field::decode(input)?),* }),)*
                $($whole_tag => Ok($enum::$whole(Field::decode(input)?)),)*
                tag => Err(DecodeError::UnknownTag { field: $label, tag }),
            }
        }
    };
}

macro_rules! structs {
    ($($name:ident $(<$lifetime:lifetime>)? { $($field:ident),* })*) => {
        $(impl<'a> Field<'a> for $name $(<$lifetime>)? {
            fn encode(&self, out: &mut Encoder<'_>) {
                $(self.$field.encode(out);)*
            }

            fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
                Ok($name { $($field: Field::decode(input)?),* })
            }
        })*
    };
}

macro_rules! enums {
    ($($name:ident $label:literal { $($tag:literal $variant:ident)* })*) => {
        $(impl<'a> Field<'a> for $name {
            fn encode(&self, out: &mut Encoder<'_>) {
                out.u8(match self { $($name::$variant => $tag,)* });
            }

            fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
                match input.u8()? {
                    $($tag => Ok($name::$variant),)*
                    tag => Err(DecodeError::UnknownTag { field: $label, tag }),
                }
            }
        })*
    };
}

pub(super) use {enums, events, structs};

events! { encode_flow_event decode_flow_event FlowEvent "event of a flow";
    1 StepTaken {}
    2 ResourceDeployed { key, tenant, name, bytes }
    4 DefinitionDeleted { key }
    7 ElementActivated { key }
    8 ElementCompleting { key }
    9 ElementCompleted { key }
    10 ElementTerminating { key }
    11 ElementTerminated { key }
    12 ElementQueued { key }
    13 TokenParked { scope, flow }
    14 VariablesSet { scope, variables }
    15 JobAttached { element, job, role }
    16 JobDetached { element, job }
    17 ListenerPassed { element, next }
    18 LoopStarted { element, items }
    19 LoopCollected { element, index, value }
    20 EventTriggered { element, node, variables }
    21 EventTaken { element }
    22 TimerArmed { key, owner, node, due_ms, repetitions }
    23 TimerGone { key }
    25 SubscriptionClosed { key }
    27 MessageCorrelated { message, process_id, instance, element }
    28 MessageQueued { key }
    29 MessageExpired { key }
    30 SignalBroadcast { key, tenant, name, variables }
    31 SignalProgressed { key, through }
    32 SignalEnded { key }
    33 IncidentRaised { key, element, kind, message }
    34 IncidentResolved { key }
    37 UserTaskEnded { key, completed }
    38 InstanceMigrated { instance, definition, nodes }
    39 CompensationKept { scope, node, variables }
    40 CompensationTaken { scope, node }
    41 LoopSatisfied { element }
    42 KeyUsed { key }
    46 UserTaskTransitionEnded { key, denied, reason }
    ;
    3 DefinitionDeployed
    5 InstanceStarted
    6 ElementEntered
    24 SubscriptionOpened
    26 MessagePublished
    35 UserTaskCreated
    36 UserTaskChanged
    43 Workflow
    44 UserTaskTransitionStarted
    45 UserTaskCorrected
}

structs! {
    DefinitionDeployed<'a> {
        key, deployment, resource, tenant, kind, id, version, version_tag, name, group, nodes
    }
    NodeName<'a> { id, name, element_type }
    InstanceStarted<'a> {
        key, definition, parent, root, starts, business_id, tags, awaited, started_by
    }
    ElementEntered { key, scope, node, loop_counter, begin_at }
    SubscriptionOpened<'a> { key, owner, node, kind, name, correlation_key }
    MessagePublished<'a> { key, tenant, name, correlation_key, message_id, until_ms, variables }
    UserTaskCreated<'a> {
        key, element, assignee, candidate_groups, candidate_users, due_date, follow_up_date,
        priority, form, form_reference, headers
    }
    UserTaskTransitionStarted<'a> { task, event, action, assignee, variables, local }
}

enums! {
    DefinitionKind "kind of a definition" {
        1 Process 2 Decision 3 DecisionRequirements 4 Form 5 Resource
    }
    JobRole "role of a job" {
        1 Work 2 StartListener 3 EndListener 4 CreatingListener 5 AssigningListener
        6 UpdatingListener 7 CompletingListener 8 CancelingListener
    }
    UserTaskEvent "event of a user task" {
        1 Creating 2 Assigning 3 Updating 4 Completing 5 Canceling
    }
    SubscriptionKind "kind of a subscription" { 1 Message 2 Signal }
    FlowIncidentKind "kind of an incident" {
        1 IoMapping 2 Condition 3 ExtractValue 4 CalledElement 5 UnhandledError 6 MessageSize
        7 CalledDecision 8 DecisionEvaluation 9 FormNotFound 10 ResourceNotFound
    }
}

impl<'a> Field<'a> for Key {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.u64(self.raw());
    }

    fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(Key::from_raw(input.u64()?))
    }
}

impl<'a> Field<'a> for u32 {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.u32(*self);
    }

    fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        input.u32()
    }
}

impl<'a> Field<'a> for u64 {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.u64(*self);
    }

    fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        input.u64()
    }
}

impl<'a> Field<'a> for bool {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.bool(*self);
    }

    fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        input.bool()
    }
}

impl<'a> Field<'a> for &'a str {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.str(self);
    }

    fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        input.str()
    }
}

impl<'a> Field<'a> for &'a [u8] {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.bytes(self);
    }

    fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        input.bytes()
    }
}

impl<'a> Field<'a> for Cow<'a, str> {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.str(self);
    }

    fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(Cow::Borrowed(input.str()?))
    }
}

impl<'a, T: Field<'a>> Field<'a> for Option<T> {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.bool(self.is_some());
        if let Some(value) = self {
            value.encode(out);
        }
    }

    fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(if input.bool()? { Some(T::decode(input)?) } else { None })
    }
}

impl<'a, T: Field<'a>> Field<'a> for Box<T> {
    fn encode(&self, out: &mut Encoder<'_>) {
        (**self).encode(out);
    }

    fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(Box::new(T::decode(input)?))
    }
}

impl<'a, A: Field<'a>, B: Field<'a>> Field<'a> for (A, B) {
    fn encode(&self, out: &mut Encoder<'_>) {
        self.0.encode(out);
        self.1.encode(out);
    }

    fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok((A::decode(input)?, B::decode(input)?))
    }
}

impl<'a, T: Field<'a> + Clone> Field<'a> for Cow<'a, [T]> {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.u64(u64::try_from(self.len()).expect("a length fits 64 bits"));
        self.iter().for_each(|item| item.encode(out));
    }

    fn decode(input: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let count = input.u64()?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(T::decode(input)?);
        }
        Ok(Cow::Owned(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::NO_KEY;

    #[track_caller]
    fn check(event: &FlowEvent<'_>) {
        let mut bytes = Vec::new();
        encode_flow_event(event, &mut Encoder::new(&mut bytes));
        let mut input = Decoder::new(&bytes);
        let back = decode_flow_event(&mut input).expect("it was just written");
        assert_eq!(format!("{back:?}"), format!("{event:?}"));
        assert!(input.is_empty(), "all of it was read");
        for end in 0..bytes.len() {
            let cut = bytes.get(..end).expect("a prefix");
            assert!(decode_flow_event(&mut Decoder::new(cut)).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn events_come_back() {
        let key = Key::from_raw(2_251_799_813_685_249);
        check(&FlowEvent::StepTaken);
        check(&FlowEvent::ResourceDeployed { key, tenant: "t", name: "a.bpmn", bytes: b"<x/>" });
        check(&FlowEvent::VariablesSet {
            scope: key,
            variables: vec![("a".into(), "1".into()), ("b".into(), "{}".into())].into(),
        });
        check(&FlowEvent::TimerArmed {
            key,
            owner: NO_KEY,
            node: 3,
            due_ms: 1_700_000_000_000,
            repetitions: Some(2),
        });
        check(&FlowEvent::ElementEntered(ElementEntered {
            key,
            scope: key,
            node: 300,
            loop_counter: 1,
            begin_at: None,
        }));
        check(&FlowEvent::IncidentRaised {
            key,
            element: key,
            kind: FlowIncidentKind::Condition,
            message: "no flow",
        });
        let task = UserTaskCreated {
            key,
            element: key,
            assignee: "ann".into(),
            candidate_groups: "[]".into(),
            candidate_users: r#"["bob"]"#.into(),
            due_date: "".into(),
            follow_up_date: "".into(),
            priority: 50,
            form: NO_KEY,
            form_reference: "".into(),
            headers: "{}".into(),
        };
        check(&FlowEvent::UserTaskCorrected(Box::new(task.clone())));
        check(&FlowEvent::UserTaskTransitionStarted(Box::new(UserTaskTransitionStarted {
            task,
            event: UserTaskEvent::Completing,
            action: "complete".into(),
            assignee: "".into(),
            variables: vec![("a".into(), "1".into())].into(),
            local: true,
        })));
        check(&FlowEvent::UserTaskTransitionEnded { key, denied: true, reason: "no" });
        for role in [JobRole::CreatingListener, JobRole::CancelingListener] {
            check(&FlowEvent::JobAttached { element: key, job: key, role });
        }
    }
}
