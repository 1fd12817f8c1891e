//! `windlass document`: small durable values with versions.

use clap::Subcommand;
use serde_json::{Value, json};
use windlass_worker::v1;

use crate::args::Online;
use crate::failure::Failure;
use crate::job::create::input;
use crate::json;
use crate::output::table;
use crate::show::bytes_text;

#[derive(Debug, Subcommand)]
pub(crate) enum DocumentCommand {
    /// Print a document
    Get {
        /// Its kind
        kind: String,
        /// Its id
        id: String,
    },
    /// Write a document
    Put {
        /// Its kind
        kind: String,
        /// Its id
        id: String,
        /// The value; - reads standard input, @FILE a file
        value: String,
        /// Only if this is its version now; 0: only if it does not exist
        #[arg(long, value_name = "VERSION")]
        expect: Option<u64>,
    },
    /// List the documents of a kind
    List {
        /// The kind
        kind: String,
        /// Behind this id
        #[arg(long, default_value = "", hide_default_value = true)]
        after: String,
        /// At most so many
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// Delete a document
    Delete {
        /// Its kind
        kind: String,
        /// Its id
        id: String,
        /// Only if this is its version now
        #[arg(long, value_name = "VERSION")]
        expect: Option<u64>,
    },
}

pub(crate) async fn run(online: &Online, command: DocumentCommand) -> Result<(), Failure> {
    let tenant = online.tenant.clone();
    match command {
        DocumentCommand::Get { kind, id } => {
            let request = v1::GetDocumentRequest { tenant, kind, id };
            let document = online.client.document(request).await?;
            let mut value = head(&document);
            json::bytes(&mut value, "value", &document.value);
            online.out.show(&value, || bytes_text(&document.value))
        }
        DocumentCommand::Put { kind, id, value, expect } => {
            let value = Some(input(&value)?);
            write(online, v1::DocumentWrite { tenant, kind, id, expected_version: expect, value })
                .await
        }
        DocumentCommand::Delete { kind, id, expect } => {
            let value = None;
            write(online, v1::DocumentWrite { tenant, kind, id, expected_version: expect, value })
                .await
        }
        DocumentCommand::List { kind, after, limit } => {
            let request = v1::ListDocumentsRequest { tenant, kind, after_id: after, limit };
            list(online, request).await
        }
    }
}

fn head(document: &v1::DocumentView) -> Value {
    json!({
        "tenant": document.tenant,
        "kind": document.kind,
        "id": document.id,
        "version": document.version,
    })
}

async fn write(online: &Online, write: v1::DocumentWrite) -> Result<(), Failure> {
    let (kind, id, deletes) = (write.kind.clone(), write.id.clone(), write.value.is_none());
    let versions = online.client.put_documents(vec![write]).await?;
    let version = versions.first().copied().unwrap_or_default();
    let value = json!({ "kind": kind, "id": id, "version": version, "deleted": deletes });
    online.out.show(&value, || {
        if deletes {
            format!("{kind}/{id} is deleted")
        } else {
            format!("{kind}/{id} has version {version}")
        }
    })
}

async fn list(online: &Online, request: v1::ListDocumentsRequest) -> Result<(), Failure> {
    let page = online.client.list_documents(request).await?;
    let documents: Vec<Value> = page.documents.iter().map(head).collect();
    let value = json!({ "documents": documents, "next": json::some(&page.next_id) });
    online.out.show(&value, || {
        let row = |document: &v1::DocumentView| {
            vec![document.kind.clone(), document.id.clone(), document.version.to_string()]
        };
        let rows: Vec<Vec<String>> = page.documents.iter().map(row).collect();
        let mut text = table(&["kind", "id", "version"], &rows);
        if !page.next_id.is_empty() {
            text.push_str(&format!("\nthere are more: --after {}", page.next_id));
        }
        text
    })
}
