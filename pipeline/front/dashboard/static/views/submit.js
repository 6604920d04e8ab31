// Submitting a job by hand.

import { post } from "/static/api.js";
import { ask, field } from "/static/dialog.js";
import { h } from "/static/dom.js";
import { short } from "/static/format.js";
import { live } from "/static/live.js";
import { select } from "/static/parts.js";
import { go } from "/static/router.js";

export function openSubmit() {
  const workflows = [...new Set((live.stats?.phases ?? []).map((phase) => phase.workflow))];
  ask({
    title: "Submit a job",
    yes: "Submit",
    fields: [
      field(
        "Workflow",
        select(
          { name: "workflow", required: true },
          workflows.map((name) => [name, name]),
          workflows[0],
        ),
      ),
      field(
        "Payload",
        h("textarea", { name: "body", rows: 6, spellcheck: "false", value: "{}" }),
        "A JSON object of references, at most 64 KiB.",
      ),
      field(
        "Priority",
        h("input", { name: "priority", type: "number", min: "0", max: "9", step: "1", value: "0", required: true }),
        "0 to 9; 9 goes first.",
      ),
    ],
    act: async ({ workflow, body, priority }) => {
      const { id } = await post("/v1/jobs", { workflow, body: read(body), priority: Number(priority) });
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
    throw new Error('The payload must be a JSON object, such as {"url": "https://example.org"}.');
  return found;
}
