//! Tables: documents, what they are compiled to ([`accepted`]) or why they are refused
//! ([`refused`]), and what no document may do ([`hostile`]).

mod accepted;
mod hostile;
mod refused;

/// A document with these elements beside its one process, which holds these; see [`expand`].
fn document(roots: &str, process: &str) -> String {
    let (roots, process) = (expand(roots), expand(process));
    format!(
        r#"<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="D">
{roots}<bpmn:process id="P" name="a process" isExecutable="true">
{process}</bpmn:process></bpmn:definitions>"#,
    )
}

/// Short forms, a line each, so that tables stay readable: `a -> b` is a sequence flow, `a -> b if =x`
/// one with a condition, `service a` a service task of type `t`, `startEvent s` any element without
/// contents. `<subProcess id="a">` is an element of BPMN, `<zeebe:x>` stays as it is, and `{<zeebe:x/>}`
/// stands in its own `extensionElements`.
fn expand(lines: &str) -> String {
    let mut text = String::new();
    for line in lines.lines().map(str::trim) {
        let words: Vec<&str> = line.split(' ').collect();
        let element = match words.as_slice() {
            [from, "->", to] => {
                format!(r#"<sequenceFlow id="{from}-{to}" sourceRef="{from}" targetRef="{to}"/>"#)
            }
            [from, "->", to, "if", condition @ ..] => format!(
                r#"<sequenceFlow id="{from}-{to}" sourceRef="{from}" targetRef="{to}"><conditionExpression>{}</conditionExpression></sequenceFlow>"#,
                condition.join(" ")
            ),
            ["service", id] => format!(
                r#"<serviceTask id="{id}">{{<zeebe:taskDefinition type="t"/>}}</serviceTask>"#
            ),
            [tag, id] if !tag.is_empty() && !tag.starts_with(['<', '{']) => {
                format!(r#"<{tag} id="{id}"/>"#)
            }
            _ => line.to_owned(),
        };
        let element = element
            .replace('{', "<extensionElements>")
            .replace('}', "</extensionElements>")
            .replace("</", "</bpmn:")
            .replace('<', "<bpmn:")
            .replace("<bpmn:/", "</")
            .replace("<bpmn:!", "<!")
            .replace("bpmn:bpmn:", "bpmn:")
            .replace("bpmn:zeebe:", "zeebe:")
            .replace("bpmn:camunda:", "camunda:");
        text.push_str(&element);
        text.push('\n');
    }
    text
}
