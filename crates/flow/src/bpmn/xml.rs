//! The XML parser, guarded: what would cost it more than the size of the text is refused before.

use roxmltree::{Document, Error, Node, ParsingOptions};

use super::{Problem, Severity};

/// An element of the document.
pub(super) type Element<'a> = Node<'a, 'a>;

pub(super) const BPMN: &str = "http://www.omg.org/spec/BPMN/20100524/MODEL";
pub(super) const ZEEBE: &str = "http://camunda.org/schema/zeebe/1.0";

/// Elements, texts and comments of a document.
const NODES_MAX: u32 = 500_000;
/// Attributes of one element: the parser compares each with each.
const ATTRIBUTES_MAX: usize = 256;
/// Declarations of namespaces in a document: the parser copies them down and searches them by name.
const NAMESPACES_MAX: usize = 1024;
/// Characters of the parser's message: it quotes the text.
const ERROR_MAX: usize = 300;

/// The text of a document.
pub(super) fn text(xml: &[u8]) -> Result<&str, Problem> {
    let text = std::str::from_utf8(xml).map_err(|_| whole("the document is not UTF-8"))?;
    if text.matches("xmlns").count() > NAMESPACES_MAX {
        return Err(whole(format!("there are more than {NAMESPACES_MAX} namespace declarations")));
    }
    if attributes_max(text) > ATTRIBUTES_MAX {
        return Err(whole(format!("an element has more than {ATTRIBUTES_MAX} attributes")));
    }
    Ok(text)
}

/// Parses it, with a bound on nodes and without document type definitions.
pub(super) fn parse(text: &str) -> Result<Document<'_>, Problem> {
    let options =
        ParsingOptions { allow_dtd: false, nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).map_err(|error| {
        if matches!(error, Error::DtdDetected) {
            return whole("a document type definition is not allowed");
        }
        if matches!(error, Error::NodesLimitReached) {
            return whole(format!("there are more than {NODES_MAX} XML nodes"));
        }
        let position = error.pos();
        Problem {
            line: position.row,
            column: position.col,
            element: String::new(),
            message: format!("the XML is broken: {error}").chars().take(ERROR_MAX).collect(),
            severity: Severity::Error,
        }
    })
}

/// Whether it is this element of BPMN.
pub(super) fn is(element: Element<'_>, name: &str) -> bool {
    element.is_element() && element.tag_name().namespace() == Some(BPMN) && name_of(element) == name
}

/// Its name without a namespace.
pub(super) fn name_of<'a>(element: Element<'a>) -> &'a str {
    element.tag_name().name()
}

/// The BPMN elements directly in it.
pub(super) fn children<'a>(element: Element<'a>) -> impl Iterator<Item = Element<'a>> {
    element
        .children()
        .filter(|child| child.is_element() && child.tag_name().namespace() == Some(BPMN))
}

/// The first BPMN element of this name directly in it.
pub(super) fn child<'a>(element: Element<'a>, name: &str) -> Option<Element<'a>> {
    children(element).find(|child| name_of(*child) == name)
}

/// The Zeebe elements directly in an element.
pub(super) fn zeebe_children<'a>(element: Element<'a>) -> impl Iterator<Item = Element<'a>> {
    element
        .children()
        .filter(|child| child.is_element() && child.tag_name().namespace() == Some(ZEEBE))
}

/// Its Zeebe extension elements.
pub(super) fn extensions<'a>(element: Element<'a>) -> impl Iterator<Item = Element<'a>> {
    child(element, "extensionElements").into_iter().flat_map(zeebe_children)
}

/// Its first Zeebe extension of this name.
pub(super) fn extension<'a>(element: Element<'a>, name: &str) -> Option<Element<'a>> {
    extensions(element).find(|extension| name_of(*extension) == name)
}

/// An attribute that says something.
pub(super) fn attribute<'a>(element: Element<'a>, name: &str) -> Option<&'a str> {
    element.attribute(name).filter(|value| !value.trim().is_empty())
}

/// Its text, whatever comments stand in it.
pub(super) fn text_of(element: Element<'_>) -> String {
    let text: String =
        element.children().filter(Node::is_text).filter_map(|node| node.text()).collect();
    text.trim().to_owned()
}

/// Whether an attribute says `true`.
pub(super) fn flag(element: Element<'_>, name: &str, default: bool) -> bool {
    match element.attribute(name).map(str::trim) {
        Some("true" | "1") => true,
        Some("false" | "0") => false,
        Some(_) | None => default,
    }
}

/// A problem of the whole document.
pub(super) fn whole(message: impl Into<String>) -> Problem {
    Problem {
        line: 0,
        column: 0,
        element: String::new(),
        message: message.into(),
        severity: Severity::Error,
    }
}

/// The most attributes in one tag.
fn attributes_max(text: &str) -> usize {
    let mut most = 0;
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once('<') {
        let skipped = [("!--", "-->"), ("![CDATA[", "]]>"), ("?", "?>")];
        let end = skipped.iter().find(|(start, _)| behind.starts_with(start)).map(|(_, end)| *end);
        rest = match end {
            Some(end) => behind.split_once(end).map_or("", |(_, behind)| behind),
            None => {
                let (count, behind) = tag(behind);
                most = most.max(count);
                behind
            }
        };
    }
    most
}

/// How many quoted values stand in the tag that begins here, and what is behind it.
fn tag(text: &str) -> (usize, &str) {
    let mut count = 0;
    let mut rest = text;
    while let Some(at) = rest.find(['>', '"', '\'']) {
        let (_, behind) = rest.split_at(at);
        let mut characters = behind.chars();
        let Some(quote) = characters.next().filter(|character| *character != '>') else {
            return (count, characters.as_str());
        };
        count += 1;
        rest = characters.as_str().split_once(quote).map_or("", |(_, behind)| behind);
    }
    (count, "")
}
