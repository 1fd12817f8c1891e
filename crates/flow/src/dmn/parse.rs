//! From a document to a model: the definitions, their decisions and knowledge models.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use roxmltree::{Document, Node};
use rustc_hash::FxBuildHasher;

use super::model::RequiredInput;
use super::model::{Decision, Definitions, FunctionDefinition, Knowledge, Logic, Model};
use super::names::SpecialNames;
use super::problem::{Problem, ProblemRule};
use super::{requirements, xml};

/// The most problems that are reported of one document.
const PROBLEMS_MAX: usize = 100;

/// Reads a model; everything that is wrong with it is said at once, up to a hundred problems.
pub fn parse(xml: &[u8]) -> Result<Model, Vec<Problem>> {
    let (model, problems) = parse_leniently(xml)?;
    if problems.is_empty() { Ok(model) } else { Err(problems) }
}

/// Reads a model although some of its expressions may be invalid: these fail when they are
/// evaluated. What leaves no model at all is still an error.
pub fn parse_leniently(xml: &[u8]) -> Result<(Model, Vec<Problem>), Vec<Problem>> {
    let text = xml::text(xml).map_err(|problem| vec![problem])?;
    let document = xml::document(text).map_err(|problem| vec![problem])?;
    let root = document.root_element();
    let mut reader = Reader {
        document: &document,
        names: SpecialNames::default(),
        namespace: xml::attribute(root, "namespace").unwrap_or_default().to_owned(),
        problems: Vec::new(),
        fatal: false,
    };
    if !xml::is_dmn(root) || root.tag_name().name() != "definitions" {
        reader.fatal(root, ProblemRule::NotDmn);
        return Err(reader.problems);
    }
    reader.allow_names(root);
    let definitions = reader.definitions(root);
    if reader.fatal {
        return Err(reader.problems);
    }
    Ok((Model(Arc::new(definitions)), reader.problems))
}

/// A document being read.
pub(super) struct Reader<'a, 'input> {
    document: &'a Document<'input>,
    /// Names that may be used unquoted although FEEL cannot spell them.
    pub(super) names: SpecialNames,
    namespace: String,
    problems: Vec<Problem>,
    fatal: bool,
}

impl Reader<'_, '_> {
    /// Notes that `node` breaks `rule`.
    pub(super) fn problem(&mut self, node: Node<'_, '_>, rule: ProblemRule) {
        if self.problems.len() >= PROBLEMS_MAX {
            return;
        }
        let place = self.document.text_pos_at(node.range().start);
        let element = xml::describe(node);
        self.problems.push(Problem { line: place.row, column: place.col, element, rule });
    }

    /// Notes a problem that leaves no model at all.
    fn fatal(&mut self, node: Node<'_, '_>, rule: ProblemRule) {
        self.fatal = true;
        self.problem(node, rule);
    }

    /// The id that should be there; the name stands in for it.
    fn id(&mut self, node: Node<'_, '_>) -> String {
        if let Some(id) = xml::attribute(node, "id") {
            return id.to_owned();
        }
        self.problem(node, ProblemRule::AttributeMissing("id"));
        xml::name(node).unwrap_or_default()
    }

    /// The name that should be there; the id stands in for it.
    fn name_or(&mut self, node: Node<'_, '_>, id: &str) -> String {
        xml::name(node).unwrap_or_else(|| {
            self.problem(node, ProblemRule::AttributeMissing("name"));
            id.to_owned()
        })
    }

    /// Allows every name of the document that a plain FEEL name cannot spell.
    fn allow_names(&mut self, root: Node<'_, '_>) {
        for node in root.descendants().filter(|node| xml::is_dmn(*node)) {
            let variable = xml::attribute(node, "iteratorVariable").map(str::to_owned);
            let own = match node.tag_name().name() {
                "variable"
                | "parameter"
                | "formalParameter"
                | "inputData"
                | "decision"
                | "businessKnowledgeModel"
                | "itemComponent"
                | "itemDefinition"
                | "column"
                | "output" => xml::name(node),
                _ => None,
            };
            for name in own.into_iter().chain(variable) {
                if !self.names.allow(&name) {
                    self.fatal(node, ProblemRule::TooLarge);
                    return;
                }
            }
        }
    }

    fn definitions(&mut self, root: Node<'_, '_>) -> Definitions {
        let decision_nodes: Vec<_> = xml::children_named(root, "decision").collect();
        let knowledge_nodes: Vec<_> = xml::children_named(root, "businessKnowledgeModel").collect();
        let mut definitions = Definitions {
            id: xml::attribute(root, "id").unwrap_or_default().to_owned(),
            name: xml::name(root).unwrap_or_default(),
            namespace: self.namespace.clone(),
            decisions: decision_nodes.iter().map(|node| self.decision(*node)).collect(),
            knowledge: knowledge_nodes.iter().map(|node| self.knowledge(*node)).collect(),
            inputs: xml::children_named(root, "inputData").map(input_data).collect(),
            decision_by_id: HashMap::default(),
            knowledge_by_id: HashMap::default(),
            knowledge_by_name: HashMap::default(),
        };
        for (position, (own, node)) in definitions.decisions.iter().zip(&decision_nodes).enumerate()
        {
            if definitions.decision_by_id.insert(own.id.clone(), position).is_some() {
                self.fatal(*node, ProblemRule::DuplicateId(own.id.clone()));
            }
        }
        for (position, (own, node)) in
            definitions.knowledge.iter().zip(&knowledge_nodes).enumerate()
        {
            definitions.knowledge_by_name.entry(own.name.clone()).or_insert(position);
            if definitions.knowledge_by_id.insert(own.id.clone(), position).is_some() {
                self.fatal(*node, ProblemRule::DuplicateId(own.id.clone()));
            }
        }
        self.check_requirements(&mut definitions, &decision_nodes, &knowledge_nodes);
        definitions
    }

    /// Drops requirements that nothing fulfils, and finds circles among the others.
    fn check_requirements(
        &mut self,
        definitions: &mut Definitions,
        decision_nodes: &[Node<'_, '_>],
        knowledge_nodes: &[Node<'_, '_>],
    ) {
        let decisions = &definitions.decision_by_id;
        let knowledge = &definitions.knowledge_by_id;
        for (own, node) in definitions.decisions.iter_mut().zip(decision_nodes) {
            self.keep_known(&mut own.required_decisions, decisions, *node);
            self.keep_known(&mut own.required_knowledge, knowledge, *node);
        }
        for (own, node) in definitions.knowledge.iter_mut().zip(knowledge_nodes) {
            let mut required = own.required_knowledge.to_vec();
            self.keep_known(&mut required, knowledge, *node);
            own.required_knowledge = Arc::from(required);
        }
        if let Some((position, ids)) = requirements::decision_cycle(definitions)
            && let Some(node) = decision_nodes.get(position)
        {
            self.fatal(*node, ProblemRule::RequirementCycle(ids));
        }
        if let Some((position, ids)) = requirements::knowledge_cycle(definitions)
            && let Some(node) = knowledge_nodes.get(position)
        {
            self.fatal(*node, ProblemRule::RequirementCycle(ids));
        }
    }

    fn keep_known(
        &mut self,
        required: &mut Vec<String>,
        known: &HashMap<String, usize, FxBuildHasher>,
        node: Node<'_, '_>,
    ) {
        let mut seen = HashSet::<String, FxBuildHasher>::default();
        required.retain(|id| {
            let is_known = known.contains_key(id);
            if !is_known {
                self.problem(node, ProblemRule::UnknownRequirement(id.clone()));
            }
            is_known && seen.insert(id.clone())
        });
    }

    fn decision(&mut self, node: Node<'_, '_>) -> Decision {
        let id = self.id(node);
        let name = self.name_or(node, &id);
        let variable = xml::child(node, "variable");
        let logic = match self.logic_child(node) {
            Some(logic) => logic,
            None => self.invalid(node, ProblemRule::LogicMissing),
        };
        Decision {
            variable: variable.and_then(xml::name).unwrap_or_else(|| id.clone()),
            type_name: variable.and_then(|own| xml::attribute(own, "typeRef")).map(str::to_owned),
            logic,
            required_decisions: self.required(node, "informationRequirement", "requiredDecision"),
            required_inputs: self.required(node, "informationRequirement", "requiredInput"),
            required_knowledge: self.required(node, "knowledgeRequirement", "requiredKnowledge"),
            id,
            name,
        }
    }

    fn knowledge(&mut self, node: Node<'_, '_>) -> Knowledge {
        let id = self.id(node);
        let name = self.name_or(node, &id);
        let function = match xml::child(node, "encapsulatedLogic") {
            Some(definition) => self.function(definition),
            None => FunctionDefinition::new(Vec::new(), None),
        };
        Knowledge {
            variable: xml::child(node, "variable").and_then(xml::name).filter(|own| *own != name),
            function: Arc::new(function),
            required_knowledge: Arc::from(self.required(
                node,
                "knowledgeRequirement",
                "requiredKnowledge",
            )),
            id,
            name,
        }
    }

    /// The ids that requirements of a kind point at.
    fn required(
        &self,
        node: Node<'_, '_>,
        holder: &'static str,
        target: &'static str,
    ) -> Vec<String> {
        xml::children_named(node, holder)
            .filter_map(|requirement| xml::child(requirement, target))
            .filter_map(|target| xml::attribute(target, "href"))
            .map(|href| self.local_id(href))
            .collect()
    }

    /// The id that a reference into this document points at; a reference into another one stays
    /// as it is, and is no id of this one.
    fn local_id(&self, href: &str) -> String {
        match href.split_once('#') {
            Some((namespace, id)) if namespace.is_empty() || namespace == self.namespace => {
                id.to_owned()
            }
            Some(_) | None => href.to_owned(),
        }
    }

    /// Notes a problem and stands in for the logic that has it.
    pub(super) fn invalid(&mut self, node: Node<'_, '_>, rule: ProblemRule) -> Logic {
        self.problem(node, rule.clone());
        Logic::Invalid(rule)
    }
}

fn input_data(node: Node<'_, '_>) -> RequiredInput {
    let id = xml::attribute(node, "id").unwrap_or_default().to_owned();
    let variable = xml::child(node, "variable");
    let type_name = variable.and_then(|own| xml::attribute(own, "typeRef")).map(str::to_owned);
    let name = variable.and_then(xml::name).or_else(|| xml::name(node));
    RequiredInput { name: name.unwrap_or_else(|| id.clone()), id, type_name }
}
