// A form for the body of a typed workflow, beside its JSON: what is typed into the one appears in the other.

import { complain, field } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { fieldsOf } from "/static/schema.js";

const MARKED = "Look at the marked fields.";
// Where the body stands in the request, as the server names its fields.
const PLACE = "body.body.";

/** `element`, the form; `raw` is the text area with the JSON, which is what will be sent. `check()` throws if a field
 *  cannot be read; `mark(problem)` shows the server's mistakes at their fields, and returns what is left to say.
 *  Null if the schema names no fields. */
export function bodyForm(schema, raw) {
  const controls = fieldsOf(schema).map((one, i) => control(one, i));
  if (!controls.length) return null;
  let body = objectOf(raw.value) ?? {};
  for (const one of controls) {
    if (one.kind === "checkbox" && one.required && !(one.name in body)) body[one.name] = one.initial ?? false;
    one.input.oninput = () => take(one);
  }
  write();
  show();
  raw.oninput = () => {
    body = objectOf(raw.value) ?? body;
    show();
  };

  function take(one) {
    try {
      const value = read(one);
      if (value === undefined) delete body[one.name];
      else body[one.name] = value;
      one.wrong = null;
    } catch (error) {
      one.wrong = `Not valid JSON: ${error.message}`;
    }
    complain(one.input, one.wrong);
    write();
  }

  function write() {
    raw.value = JSON.stringify(body, null, 2);
  }

  function show() {
    for (const one of controls) {
      display(one, body[one.name]);
      one.wrong = null;
      complain(one.input, null);
    }
  }

  return {
    element: h(
      "fieldset",
      null,
      h("legend", null, "Fields"),
      controls.map((one) => one.element),
    ),
    check() {
      const broken = controls.find((one) => one.wrong);
      if (!broken) return;
      broken.input.focus();
      throw new Error(MARKED);
    },
    mark(problem) {
      const mistakes = problem.errors ?? [];
      const rest = mistakes.filter(({ where }) => !controls.some((one) => isAt(one, where)));
      const marked = controls.filter((one) => {
        const said = mistakes.filter(({ where }) => isAt(one, where)).map((mistake) => inside(one, mistake));
        complain(one.input, said.join("; "));
        return said.length;
      });
      marked[0]?.input.focus();
      if (!marked.length) return problem;
      return new Error(rest.map(({ where, what }) => `${where}: ${what}`).join("; ") || MARKED);
    },
  };
}

const isAt = (one, where) => `${where}.`.startsWith(`${PLACE}${one.name}.`);

/** The mistake in words; in a nested value, with the way to it. */
function inside(one, { where, what }) {
  const way = where.slice(PLACE.length + one.name.length + 1);
  return way ? `${way}: ${what}` : what;
}

function objectOf(text) {
  try {
    const found = JSON.parse(text || "{}");
    return found !== null && typeof found === "object" && !Array.isArray(found) ? found : null;
  } catch {
    return null;
  }
}

function control(one, i) {
  const input = inputOf(one, { name: `body-${i}`, autocomplete: "off" });
  const label = [one.name, one.required && h("span", { class: "required" }, " required")];
  return { ...one, input, element: field(label, input, one.hint) };
}

function inputOf({ kind, choices, example, step, min, max }, props) {
  if (kind === "choice")
    return h(
      "select",
      props,
      h("option", { value: "" }, "–"),
      choices.map((one) => h("option", { value: JSON.stringify(one) }, String(one))),
    );
  if (kind === "json") return h("textarea", { ...props, rows: 3, spellcheck: "false", placeholder: "JSON" });
  if (kind === "number") return h("input", { ...props, type: "number", step, min, max });
  return h("input", { ...props, type: kind, placeholder: example });
}

/** What was typed; undefined for nothing, so that the default is used. Throws on text that is not JSON. */
function read({ kind, input }) {
  if (kind === "checkbox") return input.checked;
  if (input.value.trim() === "") return undefined;
  if (kind === "number") return Number(input.value);
  return kind === "choice" || kind === "json" ? JSON.parse(input.value) : input.value;
}

function display({ kind, input, initial }, value) {
  if (kind === "checkbox") input.checked = (value ?? initial) === true;
  else if (value === undefined || value === null) input.value = "";
  else if (kind === "choice") input.value = JSON.stringify(value);
  else input.value = typeof value === "string" && kind !== "json" ? value : JSON.stringify(value, null, 1);
}
