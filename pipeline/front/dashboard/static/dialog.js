// One question at a time, in a <dialog>: the browser keeps the focus inside and Escape closes it.

import { h } from "/static/dom.js";
import { say, warn } from "/static/notices.js";

/** Asks, and calls `act(fields)` on yes; the dialog stays, with the server's words, until that succeeded.
 *  `act(fields, {progress, stopped})` returns the sentence to say. What takes long says how far it is, and looks whether
 *  the dialog was closed in the meantime. `fields` are elements with a name. */
export function ask({ title, text, fields = [], yes, danger = false, act }) {
  const wrong = h("p", { class: "wrong-answer", role: "alert" });
  const button = h("button", { type: "submit", class: danger ? "danger" : "primary" }, yes);
  const form = h(
    "form",
    { method: "dialog", onsubmit: (event) => submit(event) },
    h("h2", { id: "question" }, title),
    text && h("p", { class: "soft" }, text),
    fields,
    wrong,
    h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), button),
  );
  const far = h("p", { class: "soft", role: "status" });
  form.insertBefore(far, wrong);
  let closed = false;
  const dialog = h("dialog", { "aria-labelledby": "question" }, form);
  dialog.addEventListener("close", () => {
    closed = true;
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();

  async function submit(event) {
    event.preventDefault();
    button.disabled = true;
    wrong.textContent = "";
    try {
      const progress = (text) => (far.textContent = text);
      const said = await act(Object.fromEntries(new FormData(form)), { progress, stopped: () => closed });
      dialog.close();
      if (said) say(said);
    } catch (problem) {
      wrong.textContent = problem.message;
    } finally {
      button.disabled = false;
    }
  }
}

/** Does something at once, without a question. */
export async function attempt(act) {
  try {
    const said = await act();
    if (said) say(said);
  } catch (problem) {
    warn(problem.message);
  }
}

/** A labelled field. */
export function field(label, control, hint) {
  const id = `field-${control.getAttribute("name")}`;
  control.id = id;
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    control,
    hint && h("p", { class: "hint", id: `${id}-hint` }, hint),
  );
}

/** Says at a field what is wrong with it; nothing takes that back. */
export function complain(control, said) {
  const id = `${control.id}-wrong`;
  const place = control.parentNode;
  place.querySelector(":scope > .wrong-answer")?.remove();
  if (said) place.append(h("p", { class: "wrong-answer", id }, said));
  const told = [place.querySelector(":scope > .hint")?.id, said && id].filter(Boolean).join(" ");
  for (const [name, value] of [
    ["aria-invalid", said && "true"],
    ["aria-describedby", told],
  ]) {
    if (value) control.setAttribute(name, value);
    else control.removeAttribute(name);
  }
}
