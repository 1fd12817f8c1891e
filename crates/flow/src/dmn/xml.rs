//! XML within bounds: what is checked before a parser that builds a tree sees the bytes.
//!
//! The parser's work is quadratic in the attributes of one element and in the namespace
//! declarations in scope, and walks over the tree recurse; so a first pass without memory counts
//! all three. It reads tags no more exactly than that needs: what it takes for a tag and is none is
//! not well-formed either.

use roxmltree::{Document, Node, ParsingOptions};

use super::problem::{Problem, ProblemRule};

/// The most nodes (elements, texts, comments) of a document.
pub(super) const NODES_MAX: u32 = 1_000_000;
/// The most elements inside one another.
pub(super) const DEPTH_MAX: usize = 96;
/// The most attributes of one element, namespace declarations among them.
pub(super) const ATTRIBUTES_MAX: usize = 256;
/// The most namespace declarations of a document.
pub(super) const NAMESPACES_MAX: usize = 4096;

/// The namespaces of DMN 1.1 to 1.5.
const DMN_NAMESPACES: [&str; 6] = [
    "http://www.omg.org/spec/DMN/20151101/dmn.xsd",
    "http://www.omg.org/spec/DMN/20151101/dmn11.xsd",
    "http://www.omg.org/spec/DMN/20180521/MODEL/",
    "https://www.omg.org/spec/DMN/20191111/MODEL/",
    "https://www.omg.org/spec/DMN/20211108/MODEL/",
    "https://www.omg.org/spec/DMN/20230324/MODEL/",
];

/// The document of these bytes, which must be UTF-8 without a document type.
pub(super) fn document(text: &str) -> Result<Document<'_>, Problem> {
    check_bounds(text).map_err(|rule| nowhere(String::new(), rule))?;
    let options =
        ParsingOptions { allow_dtd: false, nodes_limit: NODES_MAX, entity_resolver: None };
    Document::parse_with_options(text, options).map_err(|error| {
        let place = error.pos();
        let rule = if matches!(error, roxmltree::Error::DtdDetected) {
            ProblemRule::DocumentType
        } else if matches!(error, roxmltree::Error::NodesLimitReached) {
            ProblemRule::TooLarge
        } else {
            ProblemRule::NotXml(error.to_string())
        };
        Problem { line: place.row, column: place.col, element: String::new(), rule }
    })
}

/// The text of these bytes.
pub(super) fn text(bytes: &[u8]) -> Result<&str, Problem> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|_| nowhere(String::new(), ProblemRule::NotUtf8))
}

/// A problem that has no place in the text.
pub(super) fn nowhere(element: String, rule: ProblemRule) -> Problem {
    Problem { line: 0, column: 0, element, rule }
}

/// Whether this is an element of DMN, in any of its versions.
pub(super) fn is_dmn(node: Node<'_, '_>) -> bool {
    node.is_element()
        && node.tag_name().namespace().is_some_and(|own| DMN_NAMESPACES.contains(&own))
}

/// The child elements of DMN.
pub(super) fn children<'a, 'input>(
    node: Node<'a, 'input>,
) -> impl Iterator<Item = Node<'a, 'input>> {
    node.children().filter(|child| is_dmn(*child))
}

/// The child elements of DMN with this name.
pub(super) fn children_named<'a, 'input>(
    node: Node<'a, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    children(node).filter(move |child| child.tag_name().name() == name)
}

/// The first child element of DMN with this name.
pub(super) fn child<'a, 'input>(
    node: Node<'a, 'input>,
    name: &'static str,
) -> Option<Node<'a, 'input>> {
    children_named(node, name).next()
}

/// An attribute without a namespace, unless it is blank.
pub(super) fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.attribute(name).map(str::trim).filter(|value| !value.is_empty())
}

/// A name, with white space inside it reduced to single spaces.
pub(super) fn name(node: Node<'_, '_>) -> Option<String> {
    let value = attribute(node, "name")?;
    Some(value.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The content of the child `text`, comments left out; `None` without such a child.
pub(super) fn child_text(node: Node<'_, '_>) -> Option<String> {
    let holder = child(node, "text")?;
    Some(holder.children().filter(Node::is_text).filter_map(|part| part.text()).collect())
}

/// An element in words: its name and its id or name.
pub(super) fn describe(node: Node<'_, '_>) -> String {
    let tag = node.tag_name().name();
    match attribute(node, "id").or_else(|| attribute(node, "name")) {
        Some(id) => format!("{tag} '{id}'"),
        None => tag.to_owned(),
    }
}

/// Counts depth, attributes and namespaces without building anything.
fn check_bounds(text: &str) -> Result<(), ProblemRule> {
    let mut rest = text.as_bytes();
    let mut depth = 0_usize;
    let mut namespaces = 0_usize;
    while let Some(start) = rest.iter().position(|byte| *byte == b'<') {
        rest = rest.get(start..).unwrap_or_default();
        if rest.starts_with(b"<!--") {
            rest = after(rest, b"-->");
        } else if rest.starts_with(b"<![CDATA[") {
            rest = after(rest, b"]]>");
        } else if rest.starts_with(b"<?") {
            rest = after(rest, b"?>");
        } else if rest.starts_with(b"<!") {
            return Err(ProblemRule::DocumentType);
        } else {
            let tag = Tag::scan(rest);
            if tag.attributes > ATTRIBUTES_MAX {
                return Err(ProblemRule::TooLarge);
            }
            namespaces = namespaces.saturating_add(tag.namespaces);
            if namespaces > NAMESPACES_MAX {
                return Err(ProblemRule::TooLarge);
            }
            depth = match tag.shape {
                TagShape::Opens => depth.saturating_add(1),
                TagShape::Closes => depth.saturating_sub(1),
                TagShape::Empty => depth,
            };
            if depth > DEPTH_MAX {
                return Err(ProblemRule::NestedTooDeeply);
            }
            rest = tag.rest;
        }
    }
    Ok(())
}

fn after<'a>(bytes: &'a [u8], end: &[u8]) -> &'a [u8] {
    let found = bytes.windows(end.len()).position(|window| window == end);
    let next = found.map_or(bytes.len(), |position| position.saturating_add(end.len()));
    bytes.get(next..).unwrap_or_default()
}

#[derive(Clone, Copy)]
enum TagShape {
    Opens,
    Closes,
    Empty,
}

struct Tag<'a> {
    shape: TagShape,
    attributes: usize,
    namespaces: usize,
    rest: &'a [u8],
}

impl<'a> Tag<'a> {
    /// The tag at the start of `bytes`, up to the first `>` outside quotes.
    fn scan(bytes: &'a [u8]) -> Tag<'a> {
        let mut quote = None;
        let mut attributes = 0_usize;
        let mut last = b'<';
        let mut end = bytes.len();
        for (position, byte) in bytes.iter().copied().enumerate().skip(1) {
            match quote {
                Some(open) if open == byte => quote = None,
                Some(_) => {}
                None if byte == b'>' => {
                    end = position;
                    break;
                }
                None if byte == b'"' || byte == b'\'' => quote = Some(byte),
                None => attributes = attributes.saturating_add(usize::from(byte == b'=')),
            }
            last = byte;
        }
        let inside = bytes.get(..end).unwrap_or_default();
        let shape = if bytes.get(1) == Some(&b'/') {
            TagShape::Closes
        } else if last == b'/' {
            TagShape::Empty
        } else {
            TagShape::Opens
        };
        Tag {
            shape,
            attributes,
            namespaces: inside.windows(5).filter(|window| *window == b"xmlns").count(),
            rest: bytes.get(end.saturating_add(1)..).unwrap_or_default(),
        }
    }
}
