//! From a search to SQL. Values are always bound, never written into the text.

use rusqlite::types::Value as Stored;
use rusqlite::{Connection, params_from_iter};
use windlass_record::workflow::key_of;

use super::VariableScope;
use super::cursor;
use super::entities::{ElementInstance, Incident, Job, Task};
use super::entity::{Entity, Field, FieldKind};
use super::{Filter, Found, Order, PAGE_ITEMS_MAX, Search, Start, Test, VALUES_MAX, Value};
use crate::error::{HistoryError, Result};
use crate::schema::{ID_OF, stored};

/// Reads one, by its key.
pub(crate) fn get<E: Entity>(database: &Connection, key: u64) -> Result<Option<E>> {
    let (columns, from) = (E::COLUMNS.join(", "), E::FROM);
    let sql = format!("SELECT {columns} FROM {from} WHERE {} AND {} = ?1", E::WHERE, E::KEY);
    let mut statement = database.prepare_cached(&sql)?;
    let mut rows = statement.query([stored(key)])?;
    Ok(match rows.next()? {
        Some(row) => Some(E::read(row)?),
        None => None,
    })
}

/// Runs a search. Count and page see the same moment when the caller has begun a transaction.
pub(crate) fn find<E: Entity>(
    database: &Connection,
    search: &Search<E::Field>,
) -> Result<Found<E>> {
    let mut tests = Statement::default();
    tests.filter::<E>(&search.filter)?;
    let total = count::<E>(database, &tests)?;
    let limit = search.page.limit.min(PAGE_ITEMS_MAX);
    let mut found = Found { items: Vec::new(), total, first_cursor: None, last_cursor: None };
    if limit == 0 || total == 0 {
        return Ok(found);
    }
    let terms = terms::<E>(&search.sort);
    let backwards = matches!(search.page.start, Start::Before(_));
    let sql = page::<E>(&mut tests, &terms, search, limit)?;
    let mut statement = database.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(&tests.values))?;
    let mut cursors = Vec::new();
    while let Some(row) = rows.next()? {
        found.items.push(E::read(row)?);
        let from = E::COLUMNS.len();
        let values = (from..from + terms.len()).map(|at| row.get(at));
        let values = values.collect::<rusqlite::Result<Vec<Stored>>>()?;
        cursors.push(values);
    }
    if backwards {
        found.items.reverse();
        cursors.reverse();
    }
    found.first_cursor = cursors.first().map(|values| cursor::encode(values));
    found.last_cursor = cursors.last().map(|values| cursor::encode(values));
    Ok(found)
}

fn count<E: Entity>(database: &Connection, tests: &Statement) -> Result<u64> {
    let sql = format!("SELECT COUNT(*) FROM {} WHERE {} AND {}", E::FROM, E::WHERE, tests.sql);
    let mut statement = database.prepare_cached(&sql)?;
    let count: i64 = statement.query_row(params_from_iter(&tests.values), |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

/// What is sorted by.
struct Term {
    /// As it is, so that an index can be used.
    sql: &'static str,
    /// Never NULL, so that cursors can be compared; the order is the same.
    value: String,
    order: Order,
}

fn terms<E: Entity>(sort: &[(E::Field, Order)]) -> Vec<Term> {
    let mut terms: Vec<Term> = sort
        .iter()
        .map(|(field, order)| Term {
            sql: field.sql(),
            value: sortable::<E>(*field),
            order: *order,
        })
        .collect();
    if terms.iter().all(|term| term.sql != E::KEY) {
        terms.push(Term { sql: E::KEY, value: E::KEY.into(), order: Order::Ascending });
    }
    terms
}

fn sortable<E: Entity>(field: E::Field) -> String {
    let sql = field.sql();
    if sql == E::KEY {
        // As it is, so that the table's own order can be used.
        return sql.into();
    }
    match field.kind() {
        FieldKind::Text | FieldKind::List => format!("COALESCE({sql}, '')"),
        FieldKind::Key | FieldKind::Id | FieldKind::Number | FieldKind::Time | FieldKind::Flag => {
            format!("COALESCE({sql}, -1)")
        }
    }
}

/// The statement that reads the page; it binds what `tests` binds in the end.
fn page<E: Entity>(
    tests: &mut Statement,
    terms: &[Term],
    search: &Search<E::Field>,
    limit: u32,
) -> Result<String> {
    let mut offset = 0;
    let backwards = matches!(search.page.start, Start::Before(_));
    match &search.page.start {
        Start::Offset(items) => offset = *items,
        Start::After(cursor) | Start::Before(cursor) => {
            tests.sql.push_str(" AND ");
            let values = cursor::decode(cursor, terms.len())?;
            tests.behind(terms, &values, backwards);
        }
    }
    let order: Vec<String> = terms
        .iter()
        .map(|term| match (term.order, backwards) {
            (Order::Ascending, false) | (Order::Descending, true) => format!("{} ASC", term.sql),
            (Order::Descending, false) | (Order::Ascending, true) => format!("{} DESC", term.sql),
        })
        .collect();
    let columns = E::COLUMNS.iter().copied().chain(terms.iter().map(|term| term.value.as_str()));
    let columns: Vec<&str> = columns.collect();
    Ok(format!(
        "SELECT {} FROM {} WHERE {} AND {} ORDER BY {} LIMIT {limit} OFFSET {offset}",
        columns.join(", "),
        E::FROM,
        E::WHERE,
        tests.sql,
        order.join(", "),
    ))
}

/// Conditions and what they bind.
#[derive(Default)]
struct Statement {
    sql: String,
    values: Vec<Stored>,
}

impl Statement {
    fn bind(&mut self, value: Stored) {
        self.values.push(value);
        self.sql.push('?');
    }

    fn filter<E: Entity>(&mut self, filter: &Filter<E::Field>) -> Result<()> {
        match filter {
            Filter::All(filters) => self.list::<E>(filters, (" AND ", "TRUE")),
            Filter::Any(filters) => self.list::<E>(filters, (" OR ", "FALSE")),
            Filter::Field(field, test) => self.field(*field, test),
            Filter::Variable { name, value, scope } => {
                let (instance, element) = (E::INSTANCE, E::ELEMENT);
                let scope = match scope {
                    VariableScope::Anywhere => String::new(),
                    VariableScope::Instance => format!(" AND fv.scope = {instance}"),
                    VariableScope::Element => format!(" AND fv.scope = {element}"),
                };
                self.sql.push_str(&format!(
                    "EXISTS (SELECT 1 FROM variables fv WHERE fv.instance = {instance}{scope} \
                     AND fv.name = "
                ));
                self.bind(Stored::Text(name.clone()));
                self.sql.push_str(" AND ");
                self.test("fv.value", value)?;
                self.sql.push(')');
                Ok(())
            }
            Filter::HasElement(filter) => self.has::<E, ElementInstance>(filter),
            Filter::HasJob(filter) => self.has::<E, Job>(filter),
            Filter::HasIncident(filter) => self.has::<E, Incident>(filter),
            Filter::HasTask(filter) => self.has::<E, Task>(filter),
        }
    }

    fn list<E: Entity>(
        &mut self,
        filters: &[Filter<E::Field>],
        (between, empty): (&str, &str),
    ) -> Result<()> {
        if filters.is_empty() {
            self.sql.push_str(empty);
            return Ok(());
        }
        self.sql.push('(');
        for (index, filter) in filters.iter().enumerate() {
            if index > 0 {
                self.sql.push_str(between);
            }
            self.filter::<E>(filter)?;
        }
        self.sql.push(')');
        Ok(())
    }

    /// Some `I` of the same instance passes.
    fn has<E: Entity, I: Entity>(&mut self, filter: &Filter<I::Field>) -> Result<()> {
        if I::FROM == E::FROM {
            // Of itself: an inner one of the same name would hide the outer one.
            return self.filter::<I>(filter);
        }
        self.sql.push_str(&format!(
            "EXISTS (SELECT 1 FROM {} WHERE {} = {} AND ",
            I::FROM,
            I::INSTANCE,
            E::INSTANCE
        ));
        self.filter::<I>(filter)?;
        self.sql.push(')');
        Ok(())
    }

    fn field<F: Field>(&mut self, field: F, test: &Test) -> Result<()> {
        match field.kind() {
            FieldKind::List => {
                let sql = field.sql();
                self.sql.push_str(&format!("EXISTS (SELECT 1 FROM json_each({sql}) m WHERE "));
                self.test("m.value", test)?;
                self.sql.push(')');
                Ok(())
            }
            FieldKind::Id => self.id(field.sql(), test),
            FieldKind::Key
            | FieldKind::Text
            | FieldKind::Number
            | FieldKind::Time
            | FieldKind::Flag => self.test(field.sql(), test),
        }
    }

    /// A test of a key by ids: of equality by the keys in them, of anything else by their text.
    fn id(&mut self, sql: &str, test: &Test) -> Result<()> {
        let key = |id: &Value| match id {
            Value::Text(id) => key_of(id).map(|key| Value::key(key.raw())),
            Value::Number(_) | Value::Flag(_) => None,
        };
        match test {
            Test::Equal(id) => self.test(sql, &Test::In(key(id).into_iter().collect())),
            Test::In(ids) => self.test(sql, &Test::In(ids.iter().filter_map(key).collect())),
            Test::NotEqual(id) => self.test(sql, &Test::NotIn(key(id).into_iter().collect())),
            Test::NotIn(ids) => self.test(sql, &Test::NotIn(ids.iter().filter_map(key).collect())),
            Test::Exists(_) => self.test(sql, test),
            Test::Like(_)
            | Test::Resembles(_)
            | Test::Contains(_)
            | Test::Greater(_)
            | Test::GreaterOrEqual(_)
            | Test::Less(_)
            | Test::LessOrEqual(_) => self.test(&format!("{ID_OF}({sql})"), test),
        }
    }

    fn test(&mut self, sql: &str, test: &Test) -> Result<()> {
        let (sign, value) = match test {
            Test::Equal(value) => ("=", value),
            Test::NotEqual(value) => ("IS NOT", value),
            Test::Greater(value) => (">", value),
            Test::GreaterOrEqual(value) => (">=", value),
            Test::Less(value) => ("<", value),
            Test::LessOrEqual(value) => ("<=", value),
            Test::In(values) => return self.member(&format!("{sql} IN ("), values, ")"),
            Test::NotIn(values) => {
                return self.member(&format!("({sql} IS NULL OR {sql} NOT IN ("), values, "))");
            }
            Test::Like(pattern) => {
                self.sql.push_str(&format!("{sql} GLOB "));
                self.bind(Stored::Text(glob(pattern)));
                return Ok(());
            }
            Test::Resembles(pattern) => {
                self.sql.push_str(&format!("{sql} LIKE "));
                self.bind(Stored::Text(like(pattern)));
                self.sql.push_str(r" ESCAPE '\'");
                return Ok(());
            }
            Test::Contains(text) => {
                self.sql.push_str(&format!("instr(lower({sql}), "));
                self.bind(Stored::Text(text.to_ascii_lowercase()));
                self.sql.push_str(") > 0");
                return Ok(());
            }
            Test::Exists(exists) => {
                let is = if *exists { "IS NOT NULL" } else { "IS NULL" };
                self.sql.push_str(&format!("{sql} {is}"));
                return Ok(());
            }
        };
        self.sql.push_str(&format!("{sql} {sign} "));
        self.bind(value.stored());
        Ok(())
    }

    fn member(&mut self, begin: &str, values: &[Value], end: &str) -> Result<()> {
        if values.len() > VALUES_MAX || self.values.len() + values.len() > VALUES_MAX {
            return Err(HistoryError::TooManyValues { max: VALUES_MAX });
        }
        self.sql.push_str(begin);
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.sql.push_str(", ");
            }
            self.bind(value.stored());
        }
        self.sql.push_str(end);
        Ok(())
    }

    /// Those behind an item with these sort values: greater in the first term, or equal in it and
    /// greater in the second, and so on.
    fn behind(&mut self, terms: &[Term], values: &[Stored], backwards: bool) {
        self.sql.push('(');
        for last in 0..terms.len() {
            if last > 0 {
                self.sql.push_str(" OR ");
            }
            self.sql.push('(');
            for (at, (term, value)) in terms.iter().zip(values).take(last + 1).enumerate() {
                let sign = match (term.order, backwards) {
                    _ if at < last => "=",
                    (Order::Ascending, false) | (Order::Descending, true) => ">",
                    (Order::Descending, false) | (Order::Ascending, true) => "<",
                };
                if at > 0 {
                    self.sql.push_str(" AND ");
                }
                self.sql.push_str(&format!("{} {sign} ", term.value));
                self.bind(value.clone());
            }
            self.sql.push(')');
        }
        self.sql.push(')');
    }
}

impl Value {
    fn stored(&self) -> Stored {
        match self {
            Value::Number(number) => Stored::Integer(*number),
            Value::Text(text) => Stored::Text(text.clone()),
            Value::Flag(flag) => Stored::Integer((*flag).into()),
        }
    }
}

/// A pattern of `*`, `?` and backslash as SQLite's GLOB wants it, which has no backslash but sets.
fn glob(pattern: &str) -> String {
    let mut glob = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(escaped @ ('*' | '?' | '[')) => {
                    glob.push('[');
                    glob.push(escaped);
                    glob.push(']');
                }
                Some(escaped) => glob.push(escaped),
                None => glob.push('\\'),
            },
            '[' => glob.push_str("[[]"),
            letter => glob.push(letter),
        }
    }
    glob
}

/// A pattern of `*` as SQLite's LIKE wants it.
fn like(pattern: &str) -> String {
    let mut like = String::with_capacity(pattern.len());
    for letter in pattern.chars() {
        match letter {
            '*' => like.push('%'),
            '%' | '_' | '\\' => like.extend(['\\', letter]),
            letter => like.push(letter),
        }
    }
    like
}

#[cfg(test)]
mod tests {
    use super::{glob, like};

    #[test]
    fn a_pattern_keeps_its_meaning() {
        for (pattern, expected) in
            [("a*b?", "a*b?"), (r"a\*b", "a[*]b"), ("x[1]", "x[[]1]"), (r"\\", r"\"), (r"\", r"\")]
        {
            assert_eq!(glob(pattern), expected, "{pattern}");
        }
    }
    #[test]
    fn only_a_star_is_special_where_capitals_are_not() {
        for (pattern, expected) in [("a*", "a%"), ("5%_", r"5\%\_"), (r"\", r"\\")] {
            assert_eq!(like(pattern), expected, "{pattern}");
        }
    }
}
