//! Makes a request that a schema allows. Values that the schema fixes are copied. Every other value gets the smallest
//! allowed content and is listed as a blank.

mod pattern;

use clresolve_core::call::REQUEST_ID;
use clresolve_core::json::pointer;
use clresolve_core::text::truncate_bytes;
use clresolve_verdict::schema::bound::BoundSchema;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

/// Maximum depth of a template. A schema may be infinitely recursive.
const MAX_LEVELS: usize = 16;

/// Maximum number of values in a template, for the same reason.
const MAX_VALUES: usize = 1024;

/// Maximum number of rules for one value. Each reference and each alternative adds some.
const MAX_RULES: usize = 256;

/// Maximum number of rules evaluated per template, including discarded drafts: 64 for each value of the largest
/// template. A nested object is drafted again with its parent, so the number of drafts multiplies by level, and by
/// condition within condition.
const MAX_WORK: usize = 64 * MAX_VALUES;

/// Maximum number of JSON bytes copied from a schema per template, including drafts: four times the largest request.
const MAX_COPIED_BYTES: usize = 1 << 20;

/// Maximum number of times that an object's conditions are evaluated again after a member was added.
const MAX_ROUNDS: usize = 4;

/// Maximum length of a hint, in bytes.
const MAX_HINT_BYTES: usize = 160;

/// Maximum number of generated list items, or characters of a text, if a schema requires many.
const MAX_MADE_UP: usize = 256;

/// A request template and its blanks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestTemplate {
    /// The request.
    pub request: Value,
    /// The placeholder values that must be replaced.
    pub blanks: Vec<TemplateBlank>,
    /// Whether the schema accepts the template unchanged.
    pub is_valid: bool,
}

/// A placeholder value that must be replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TemplateBlank {
    /// JSON Pointer into the request.
    pub pointer: String,
    /// The schema's description of the value.
    pub hint: String,
}

impl RequestTemplate {
    /// Makes the template of a schema. `request_id` is a unique identifier for the request, and `now` the current time.
    pub fn from_schema(schema: &BoundSchema, request_id: &str, now: Timestamp) -> Self {
        let mut maker = RequestTemplateBuilder::new(schema, request_id, now);
        let request = maker.build_value(vec![root_schema(schema)], "", 0);
        let is_valid = schema.every_violation(&request).next().is_none();
        Self { request, blanks: maker.blanks, is_valid }
    }
}

/// Path of the request's identifier in the schema, if it has one.
pub fn request_id_path(schema: &BoundSchema) -> Option<&'static str> {
    let has = |place: &&str| {
        let mut rules = vec![root_schema(schema)];
        for name in place.split('/').skip(1) {
            rules = expand_references(schema, rules).iter().filter_map(|rule| rule.property_schema(name)).collect();
        }
        !rules.is_empty()
    };
    REQUEST_ID.into_iter().find(has)
}

/// A schema that applies to a value, and the document that contains it.
#[derive(Clone, Copy)]
struct SchemaInDocument<'s> {
    document: &'s Value,
    schema: &'s Value,
}

impl<'s> SchemaInDocument<'s> {
    fn keyword_value(&self, keyword: &str) -> Option<&'s Value> {
        self.schema.get(keyword)
    }

    fn with_subschema(&self, schema: &'s Value) -> Self {
        Self { schema, ..*self }
    }

    fn property_schema(&self, name: &str) -> Option<Self> {
        self.keyword_value("properties")?.get(name).map(|schema| self.with_subschema(schema))
    }

    fn keyword_text(&self, keyword: &str) -> Option<&'s str> {
        self.keyword_value(keyword).and_then(Value::as_str)
    }
}

fn root_schema(schema: &BoundSchema) -> SchemaInDocument<'_> {
    SchemaInDocument { document: schema.document(), schema: schema.document() }
}

/// The rules and everything that they refer to. Of several alternatives, the first applies.
fn expand_references<'s>(schema: &'s BoundSchema, rules: Vec<SchemaInDocument<'s>>) -> Vec<SchemaInDocument<'s>> {
    let mut all = rules;
    all.truncate(MAX_RULES);
    let mut at = 0;
    while let Some(rule) = all.get(at).copied() {
        at += 1;
        let referred = rule.keyword_text("$ref").and_then(|to| schema.resolve_reference(rule.document, to));
        let referred = referred.map(|(document, schema)| SchemaInDocument { document, schema });
        let list = |keyword| rule.keyword_value(keyword).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let alternatives = ["anyOf", "oneOf"].into_iter().filter_map(|keyword| list(keyword).first());
        let beside = list("allOf").iter().chain(alternatives).map(|schema| rule.with_subschema(schema));
        let room = MAX_RULES - all.len();
        all.extend(referred.into_iter().chain(beside).take(room));
    }
    all
}

/// Fills the members that a schema requires.
struct RequestTemplateBuilder<'s> {
    schema: &'s BoundSchema,
    request_id: &'s str,
    now: Timestamp,
    blanks: Vec<TemplateBlank>,
    /// Number of values in the result.
    values: usize,
    /// Number of rules evaluated, including discarded drafts.
    work: usize,
    /// Number of JSON bytes copied, including discarded drafts.
    copied: usize,
}

impl<'s> RequestTemplateBuilder<'s> {
    const fn new(schema: &'s BoundSchema, request_id: &'s str, now: Timestamp) -> Self {
        Self { schema, request_id, now, blanks: Vec::new(), values: 0, work: 0, copied: 0 }
    }

    const fn is_exhausted(&self) -> bool {
        self.work > MAX_WORK || self.copied > MAX_COPIED_BYTES
    }

    /// A value of the schema as JSON; `None` if the copy limit is exhausted.
    fn serialize_within_limit(&mut self, value: &Value) -> Option<String> {
        if self.is_exhausted() {
            return None;
        }
        let text = value.to_string();
        self.copied += text.len();
        (!self.is_exhausted()).then_some(text)
    }

    fn copy_within_limit(&mut self, value: &Value) -> Value {
        self.serialize_within_limit(value).map_or(Value::Null, |_| value.clone())
    }

    fn expand_and_count_rules(&mut self, rules: Vec<SchemaInDocument<'s>>) -> Vec<SchemaInDocument<'s>> {
        let rules = expand_references(self.schema, rules);
        self.work += rules.len();
        rules
    }

    fn build_value(&mut self, rules: Vec<SchemaInDocument<'s>>, place: &str, level: usize) -> Value {
        self.values += 1;
        if level > MAX_LEVELS || self.values > MAX_VALUES || self.is_exhausted() {
            return Value::Null;
        }
        let rules = self.expand_and_count_rules(rules);
        let first = |keyword: &str| rules.iter().find_map(|rule| rule.keyword_value(keyword));
        if let Some(fixed) = first("const").or_else(|| first("default")) {
            return self.copy_within_limit(fixed);
        }
        if REQUEST_ID.contains(&place) {
            return Value::from(self.request_id);
        }
        if let Some(Value::Array(options)) = first("enum") {
            if options.len() > 1 {
                self.add_blank(&rules, place);
            }
            let others: Vec<_> =
                rules.iter().filter_map(|rule| rule.keyword_value("enum")?.as_array()).skip(1).collect();
            self.work += others.iter().map(|other| options.len().saturating_mul(other.len())).sum::<usize>();
            if self.is_exhausted() {
                return Value::Null;
            }
            let allowed = options.iter().find(|option| others.iter().all(|other| other.contains(option)));
            return allowed.map_or(Value::Null, |allowed| self.copy_within_limit(allowed));
        }
        if let Some(example) = first("examples").and_then(|examples| examples.get(0)) {
            self.add_blank(&rules, place);
            return self.copy_within_limit(example);
        }
        match json_type(&rules) {
            "object" => self.build_object(&rules, place, level),
            "array" => self.build_list(&rules, place, level),
            "string" if first("format").is_some_and(|format| format == "date-time") => self.now.to_string().into(),
            other => {
                self.add_blank(&rules, place);
                placeholder_value(other, &rules, place)
            }
        }
    }

    fn build_object(&mut self, rules: &[SchemaInDocument<'s>], place: &str, level: usize) -> Value {
        let mut rules = rules.to_vec();
        let mut judged = 0;
        for _ in 0..MAX_ROUNDS {
            let (blanks, values) = (self.blanks.len(), self.values);
            let draft = self.build_members(&rules, place, level);
            let conditions = rules[judged..].iter().filter(|rule| rule.keyword_value("if").is_some());
            let added: Vec<_> = conditions.filter_map(|rule| self.conditional_schema(*rule, &draft)).collect();
            judged = rules.len();
            if added.is_empty() || self.is_exhausted() {
                return Value::Object(draft);
            }
            rules.extend(self.expand_and_count_rules(added));
            self.blanks.truncate(blanks);
            self.values = values;
        }
        Value::Object(self.build_members(&rules, place, level))
    }

    /// The rule that a rule's condition adds for this object.
    fn conditional_schema(
        &mut self,
        rule: SchemaInDocument<'s>,
        draft: &Map<String, Value>,
    ) -> Option<SchemaInDocument<'s>> {
        if self.is_exhausted() {
            return None;
        }
        let condition = self.expand_and_count_rules(vec![rule.with_subschema(rule.keyword_value("if")?)]);
        let keyword = if condition.iter().all(|rule| meets_condition(*rule, draft)) { "then" } else { "else" };
        rule.keyword_value(keyword).map(|schema| rule.with_subschema(schema))
    }

    fn build_members(&mut self, rules: &[SchemaInDocument<'s>], place: &str, level: usize) -> Map<String, Value> {
        let required = rules.iter().filter_map(|rule| rule.keyword_value("required")?.as_array()).flatten();
        let ids = REQUEST_ID.into_iter().filter_map(|id| id.strip_prefix(place)?.strip_prefix('/'));
        let ids = ids.filter(|id| rules.iter().any(|rule| rule.property_schema(id).is_some()));
        let mut members = Map::new();
        for name in required.filter_map(Value::as_str).chain(ids) {
            if members.contains_key(name) {
                continue;
            }
            self.work += rules.len();
            if self.is_exhausted() {
                break;
            }
            let mut below = place.to_owned();
            pointer::push_pointer_segment(&mut below, name);
            let of_member = rules.iter().filter_map(|rule| rule.property_schema(name)).collect();
            members.insert(name.to_owned(), self.build_value(of_member, &below, level + 1));
        }
        members
    }

    fn build_list(&mut self, rules: &[SchemaInDocument<'s>], place: &str, level: usize) -> Value {
        let of_item: Vec<_> =
            rules.iter().filter_map(|rule| Some(rule.with_subschema(rule.keyword_value("items")?))).collect();
        let least = usize::try_from(tightest_bound(rules, "minItems", u64::max).unwrap_or(0)).unwrap_or(usize::MAX);
        let item = |at: usize| self.build_value(of_item.clone(), &format!("{place}/{at}"), level + 1);
        Value::Array((0..least.min(MAX_MADE_UP)).map(item).collect())
    }

    fn add_blank(&mut self, rules: &[SchemaInDocument<'s>], place: &str) {
        let said = |keyword| rules.iter().find_map(|rule| rule.keyword_text(keyword));
        let described = said("description").or_else(|| said("title")).map(|text| truncate_bytes(text, MAX_HINT_BYTES));
        let options = rules
            .iter()
            .find_map(|rule| rule.keyword_value("enum"))
            .and_then(|options| self.serialize_within_limit(options));
        let options = options.map(|options| format!("one of {options}"));
        let hint = [options, described].into_iter().flatten().collect::<Vec<_>>().join("; ");
        self.blanks.push(TemplateBlank { pointer: place.to_owned(), hint: truncate_bytes(&hint, MAX_HINT_BYTES) });
    }
}

/// The JSON type that the rules require.
fn json_type<'s>(rules: &[SchemaInDocument<'s>]) -> &'s str {
    let stated = rules.iter().find_map(|rule| match rule.keyword_value("type")? {
        Value::String(kind) => Some(kind.as_str()),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ => None,
    });
    let has = |keyword: &str| rules.iter().any(|rule| rule.keyword_value(keyword).is_some());
    match stated {
        Some(kind) => kind,
        None if has("properties") || has("required") => "object",
        None if has("items") => "array",
        None => "string",
    }
}

/// The smallest value of this type that the rules allow.
fn placeholder_value(kind: &str, rules: &[SchemaInDocument<'_>], place: &str) -> Value {
    match kind {
        "boolean" => Value::Bool(false),
        "null" => Value::Null,
        "integer" | "number" => least_number(rules),
        _ => Value::String(placeholder_text(rules, place)),
    }
}

/// The smallest allowed non-negative number, or the largest allowed number if none is non-negative.
fn least_number(rules: &[SchemaInDocument<'_>]) -> Value {
    let figure = |keyword: &str| rules.iter().find_map(|rule| rule.keyword_value(keyword)?.as_f64());
    let least = figure("minimum").or_else(|| figure("exclusiveMinimum").map(|least| least.floor() + 1.0));
    let most = figure("maximum").or_else(|| figure("exclusiveMaximum").map(|most| most.ceil() - 1.0));
    let chosen = least.unwrap_or(0.0).max(0.0_f64.min(most.unwrap_or(0.0)));
    let step = figure("multipleOf").filter(|step| *step > 0.0);
    let chosen = step.map_or(chosen, |step| (chosen / step).ceil() * step);
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and a double holds it")]
    if chosen.fract() == 0.0 && chosen.abs() < 9e15 { (chosen as i64).into() } else { chosen.into() }
}

/// A text that the rules allow. It follows the format or the pattern; without either, it is the member's name adjusted
/// to the required length.
fn placeholder_text(rules: &[SchemaInDocument<'_>], place: &str) -> String {
    let first = |keyword: &str| rules.iter().find_map(|rule| rule.keyword_text(keyword));
    let of_format = match first("format") {
        Some("uri" | "iri" | "uri-reference" | "iri-reference") => Some("https://example.com/"),
        Some("email" | "idn-email") => Some("name@example.com"),
        Some("hostname" | "idn-hostname") => Some("example.com"),
        Some("uuid") => Some("00000000-0000-4000-8000-000000000000"),
        Some("date") => Some("2026-01-01"),
        Some("time") => Some("00:00:00Z"),
        Some("duration") => Some("PT1S"),
        Some("ipv4") => Some("192.0.2.1"),
        Some("ipv6") => Some("2001:db8::1"),
        _ => None,
    };
    if let Some(text) = of_format {
        return text.to_owned();
    }
    if let Some(text) = first("pattern").and_then(pattern::shortest_match) {
        return text;
    }
    let limit =
        |keyword: &str, tighter| tightest_bound(rules, keyword, tighter).and_then(|limit| usize::try_from(limit).ok());
    let least = limit("minLength", u64::max).unwrap_or(0).min(MAX_MADE_UP);
    let most = limit("maxLength", u64::min).unwrap_or(MAX_MADE_UP);
    let name = place.rsplit('/').find(|segment| segment.parse::<usize>().is_err()).unwrap_or_default();
    let padded = format!("<{name}>").chars().chain(std::iter::repeat('.')).take(MAX_MADE_UP).collect::<Vec<_>>();
    let length = (name.chars().count() + 2).max(least).min(most);
    padded.into_iter().take(length).collect()
}

/// The strictest value of a limit over all rules.
fn tightest_bound(rules: &[SchemaInDocument<'_>], keyword: &str, tighter: fn(u64, u64) -> u64) -> Option<u64> {
    rules.iter().filter_map(|rule| rule.keyword_value(keyword)?.as_u64()).reduce(tighter)
}

/// Whether an object meets a condition. Evaluates `required`, and `const` and `enum` of `properties`.
fn meets_condition(rule: SchemaInDocument<'_>, draft: &Map<String, Value>) -> bool {
    let required =
        rule.keyword_value("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut values = rule.keyword_value("properties").and_then(Value::as_object).into_iter().flatten();
    let is_met = |(name, schema): (&String, &Value)| {
        let Some(value) = draft.get(name) else { return true };
        let is_fixed = schema.get("const").is_none_or(|fixed| fixed == value);
        let is_listed = schema.get("enum").and_then(Value::as_array).is_none_or(|list| list.contains(value));
        is_fixed && is_listed
    };
    required.into_iter().all(|name| draft.contains_key(name)) && values.all(is_met)
}

#[cfg(test)]
mod tests {
    use clresolve_verdict::sample::sample_bound_schema;
    use serde_json::json;

    use super::*;

    /// The template of this schema, and the work that it required.
    fn made(schema: &Value) -> (RequestTemplate, usize) {
        let schema = sample_bound_schema(schema);
        let mut maker = RequestTemplateBuilder::new(&schema, "", Timestamp::UNIX_EPOCH);
        maker.build_value(vec![root_schema(&schema)], "", 0);
        (RequestTemplate::from_schema(&schema, "", Timestamp::UNIX_EPOCH), maker.work)
    }

    /// A recursive object schema with nested conditions.
    fn recursive(conditions: usize) -> Value {
        let condition = |then, _| json!({"if": {"required": ["a"]}, "then": then});
        let mut schema = (0..conditions).fold(json!({}), condition);
        for (keyword, value) in [
            ("$id", json!("https://schemas.example/request.json")),
            ("type", json!("object")),
            ("required", json!(["a"])),
            ("properties", json!({"a": {"$ref": "#"}})),
        ] {
            schema[keyword] = value;
        }
        schema
    }

    #[test]
    fn a_template_ends() {
        let twice = json!({"$id": "https://schemas.example/request.json", "type": "object", "required": ["a", "b"],
            "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}});
        let circle = json!({"$id": "https://schemas.example/request.json", "$ref": "#/$defs/a",
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        for (schema, is_valid) in [(twice, false), (circle, true), (recursive(1), false), (recursive(4), false)] {
            let (template, work) = made(&schema);
            println!("{work} rules: {schema}");
            assert_eq!(template.is_valid, is_valid, "{schema}");
            assert!(work <= MAX_WORK + MAX_LEVELS * MAX_RULES, "{work} rules: {schema}");
        }
    }

    /// A schema that repeats a long value many times must not multiply the size of the template.
    #[test]
    fn a_template_is_bounded_in_bytes() {
        let long = "x".repeat(100_000);
        for value in
            [json!({"const": long}), json!({"default": long}), json!({"examples": [long]}), json!({"enum": [long, 1]})]
        {
            let names: Vec<String> = (0..1000).map(|number| format!("m{number}")).collect();
            let members: Map<String, Value> =
                names.iter().map(|name| (name.clone(), json!({"$ref": "#/$defs/long"}))).collect();
            let (template, _) = made(&json!({"$id": "https://schemas.example/request.json", "type": "object",
                "required": names, "properties": members, "$defs": {"long": value}}));
            let bytes = template.request.to_string().len();
            assert!((MAX_COPIED_BYTES / 4..2 * MAX_COPIED_BYTES).contains(&bytes), "{bytes} bytes");
        }
    }
}
