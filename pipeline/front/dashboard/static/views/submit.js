// Submitting a job by hand.

import { get, post } from "/static/api.js";
import { bodyForm } from "/static/body_form.js";
import { ask, attempt, field } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { short } from "/static/format.js";
import { select } from "/static/parts.js";
import { go } from "/static/router.js";

export function openSubmit() {
  attempt(async () => show(await get("/v1/workflows")));
}

function show(workflows) {
  const raw = h("textarea", { name: "body", rows: 6, spellcheck: "false", value: "{}" });
  const columns = h("div", { class: "body" });
  const whole = field("Body", raw, "A JSON object of references, at most 64 KiB.");
  const first = workflows[0]?.name;
  let form = null;
  choose(first);

  function choose(name) {
    const schema = workflows.find((one) => one.name === name)?.body_schema;
    raw.oninput = null;
    form = schema ? bodyForm(schema, raw) : null;
    columns.replaceChildren(...(form ? [form.element, whole] : [whole]));
  }

  ask({
    title: "Submit a job",
    yes: "Submit",
    fields: [
      field(
        "Workflow",
        select(
          { name: "workflow", required: true, onchange: (event) => choose(event.target.value) },
          workflows.map(({ name }) => [name, name]),
          first,
        ),
      ),
      columns,
      field(
        "Priority",
        h("input", { name: "priority", type: "number", min: "0", max: "9", step: "1", value: "0", required: true }),
        "0 to 9; 9 goes first.",
      ),
    ],
    act: async ({ workflow, body, priority }) => {
      form?.check();
      const wish = { workflow, body: read(body), priority: Number(priority) };
      const { id } = await post("/v1/jobs", wish).catch((problem) => {
        throw form?.mark(problem) ?? problem;
      });
      go(`/jobs/${id}`);
      return `Submitted job ${short(id)}.`;
    },
  });
}

function read(text) {
  let found;
  try {
    found = JSON.parse(text || "{}");
  } catch (error) {
    throw new Error(`The body is not valid JSON: ${error.message}`);
  }
  if (found === null || typeof found !== "object" || Array.isArray(found))
    throw new Error('The body must be a JSON object, such as {"url": "https://example.org"}.');
  return found;
}
