// What a JSON Schema asks for: the fields of an object, each with the kind of control that it is typed into.

/** The fields in their order: {name, kind, required, hint, initial, …}; `kind` is choice, checkbox, number, date, text
 *  or json. A choice has `choices`, values of any type; a number has `step`, `min` and `max`. */
export function fieldsOf(schema) {
  const whole = resolved(schema, schema);
  const required = new Set(whole.required ?? []);
  return Object.entries(whole.properties ?? {}).map(([name, field]) => ({
    name,
    required: required.has(name),
    hint: [hintOf(field, schema), says(field.default) && `Default: ${text(field.default)}.`].filter(Boolean).join(" "),
    initial: field.default,
    ...controlOf(field, schema),
  }));
}

function hintOf(field, schema) {
  const said = field.description ?? (field.$ref && resolved(field, schema).description) ?? "";
  return said && !/[.!?]$/.test(said) ? `${said}.` : said;
}

/** Whether a default tells more than an empty control does. */
const says = (value) => ![undefined, "null", '""', "false", "[]", "{}"].includes(JSON.stringify(value));

const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));

/** What a reference leads to. */
function resolved(field, schema) {
  const name = field.$ref?.startsWith("#/$defs/") ? field.$ref.slice("#/$defs/".length) : null;
  return schema.$defs?.[name] ?? field;
}

/** A field may take one of several types; null among them only means that it may be left out. */
function alternatives(field, schema) {
  const one = resolved(field, schema);
  const several = one.anyOf ?? one.oneOf;
  return several ? several.flatMap((other) => alternatives(other, schema)) : [one];
}

function controlOf(field, schema) {
  const all = alternatives(field, schema);
  const kinds = all.filter(({ type }) => type !== "null");
  const types = new Set(kinds.map(({ type }) => type));
  if (kinds.length && kinds.every((one) => one.enum || "const" in one))
    return { kind: "choice", choices: kinds.flatMap((one) => one.enum ?? [one.const]) };
  if (types.size === 1 && types.has("boolean"))
    return all.length === 1 ? { kind: "checkbox" } : { kind: "choice", choices: [true, false] };
  const [first] = kinds;
  if (kinds.length === 1 && (first.type === "integer" || first.type === "number"))
    return { kind: "number", step: first.type === "integer" ? 1 : "any", min: first.minimum, max: first.maximum };
  if (kinds.length === 1 && first.type === "string" && first.format === "date") return { kind: "date" };
  // A number that may also be written as text is one whose digits all count, such as an amount of money.
  if (types.has("string") && [...types].every((type) => ["string", "number", "integer"].includes(type)))
    return { kind: "text", example: first.format === "date-time" ? "2030-01-31T12:00:00Z" : null };
  return { kind: "json" };
}
