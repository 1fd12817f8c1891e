//! The processes of the load shapes, as BPMN.

/// A chain of tasks of one job type; its element ids are `task1`, `task2` and so on.
pub(super) fn chain(id: &str, job_type: &str, tasks: u32) -> String {
    let mut elements = String::from("<bpmn:startEvent id=\"start\" />");
    let mut flows = String::new();
    let mut before = "start".to_owned();
    for task in 1..=tasks {
        let here = format!("task{task}");
        elements.push_str(&format!(
            "<bpmn:serviceTask id=\"{here}\"><bpmn:extensionElements>\
             <zeebe:taskDefinition type=\"{job_type}\" />\
             </bpmn:extensionElements></bpmn:serviceTask>"
        ));
        flows.push_str(&flow(&before, &here));
        before = here;
    }
    elements.push_str("<bpmn:endEvent id=\"end\" />");
    flows.push_str(&flow(&before, "end"));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <bpmn:definitions xmlns:bpmn=\"http://www.omg.org/spec/BPMN/20100524/MODEL\" \
         xmlns:zeebe=\"http://camunda.org/schema/zeebe/1.0\" id=\"definitions\" \
         targetNamespace=\"http://windlass.dev/bench\">\n\
         <bpmn:process id=\"{id}\" isExecutable=\"true\">{elements}{flows}</bpmn:process>\n\
         </bpmn:definitions>\n"
    )
}

fn flow(from: &str, to: &str) -> String {
    format!("<bpmn:sequenceFlow id=\"{from}_to_{to}\" sourceRef=\"{from}\" targetRef=\"{to}\" />")
}

/// The place of a task in its chain, from 0, as its element id says it.
pub(super) fn place(element_id: &str) -> Option<u32> {
    element_id.strip_prefix("task")?.parse::<u32>().ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_back() {
        assert_eq!((place("task1"), place("task10"), place("start")), (Some(0), Some(9), None));
        let text = chain("chain", "work", 2);
        assert!(text.contains("sourceRef=\"task1\" targetRef=\"task2\""), "{text}");
        assert!(text.contains("sourceRef=\"task2\" targetRef=\"end\""), "{text}");
    }
}
