//! Words of states and kinds, as Camunda's API says them.

/// An enum with a word per variant, stored as that word.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)*
        }

        impl $name {
            /// Its word.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }

            /// The one with this word.
            pub fn named(word: &str) -> Option<$name> {
                match word {
                    $($word => Some($name::$variant),)*
                    _ => None,
                }
            }
        }

        impl rusqlite::ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
                Ok(self.name().into())
            }
        }

        impl rusqlite::types::FromSql for $name {
            fn column_result(
                value: rusqlite::types::ValueRef<'_>,
            ) -> rusqlite::types::FromSqlResult<$name> {
                $name::named(value.as_str()?).ok_or(rusqlite::types::FromSqlError::InvalidType)
            }
        }
    };
}

named! {
    /// Where a process instance or an element instance is.
    FlowState {
        /// Not ended.
        Active = "ACTIVE",
        /// Ended as it should.
        Completed = "COMPLETED",
        /// Ended from outside.
        Terminated = "TERMINATED",
    }
}

named! {
    /// The last thing that happened to a job.
    JobState {
        /// It was made; it waits or is being worked on.
        Created = "CREATED",
        /// Done.
        Completed = "COMPLETED",
        /// The newest attempt failed.
        Failed = "FAILED",
        /// Its worker threw a business error.
        ErrorThrown = "ERROR_THROWN",
        /// Its lease ended, or it did by a deadline.
        TimedOut = "TIMED_OUT",
        /// It has other retries.
        RetriesUpdated = "RETRIES_UPDATED",
        /// It has another priority.
        PriorityUpdated = "PRIORITY_UPDATED",
        /// Its lease ends at another time.
        TimeoutUpdated = "TIMEOUT_UPDATED",
        /// It belongs to another definition.
        Migrated = "MIGRATED",
        /// No longer wanted.
        Canceled = "CANCELED",
    }
}

named! {
    /// What a job is for.
    JobKind {
        /// The work of an element, or a job without a flow.
        BpmnElement = "BPMN_ELEMENT",
        /// Before or after an element's work.
        ExecutionListener = "EXECUTION_LISTENER",
        /// Before something happens to a user task.
        TaskListener = "TASK_LISTENER",
    }
}

named! {
    /// When a listener's job is made.
    ListenerEvent {
        /// Before the work.
        Start = "START",
        /// After the work.
        End = "END",
        /// Before a user task is there.
        Creating = "CREATING",
        /// Before a user task is somebody else's.
        Assigning = "ASSIGNING",
        /// Before a user task has other properties.
        Updating = "UPDATING",
        /// Before a user task is done.
        Completing = "COMPLETING",
        /// Before a user task is no longer wanted.
        Canceling = "CANCELING",
    }
}

named! {
    /// Where an incident is.
    IncidentState {
        /// Somebody must look.
        Active = "ACTIVE",
        /// Resolved, or gone with what it was about.
        Resolved = "RESOLVED",
    }
}

named! {
    /// Where a user task is.
    UserTaskState {
        /// It waits for a person.
        Created = "CREATED",
        /// Done.
        Completed = "COMPLETED",
        /// No longer wanted.
        Canceled = "CANCELED",
        /// Its listeners are asked before it is there.
        Creating = "CREATING",
        /// The same before it is somebody else's.
        Assigning = "ASSIGNING",
        /// The same before it has other properties.
        Updating = "UPDATING",
        /// The same before it is done.
        Completing = "COMPLETING",
        /// The same before it is no longer wanted.
        Canceling = "CANCELING",
    }
}

named! {
    /// Where a message subscription is.
    SubscriptionState {
        /// It waits.
        Created = "CREATED",
        /// A message came.
        Correlated = "CORRELATED",
        /// It waits no longer.
        Deleted = "DELETED",
        /// It belongs to another definition.
        Migrated = "MIGRATED",
    }
}

named! {
    /// Who waits for a message.
    SubscriptionKind {
        /// A start event of a definition.
        StartEvent = "START_EVENT",
        /// An element of an instance.
        ProcessEvent = "PROCESS_EVENT",
    }
}

named! {
    /// What a definition is.
    DefinitionKind {
        /// A process.
        Process = "PROCESS",
        /// A decision.
        Decision = "DECISION",
        /// The graph that decisions stand in.
        Requirements = "DECISION_REQUIREMENTS",
        /// A form.
        Form = "FORM",
        /// Any other file.
        Resource = "RESOURCE",
    }
}
