// The sign-in, where tokens are set. The token is sent once; the browser keeps a cookie that scripts cannot read.

import { post } from "/static/api.js";
import { field } from "/static/dialog.js";
import { h } from "/static/dom.js";

/** Calls `enter(session)` when somebody is signed in. */
export function signIn(enter) {
  const wrong = h("p", { class: "wrong-answer", role: "alert" });
  const token = h("input", {
    name: "token",
    type: "password",
    required: true,
    maxlength: 500,
    autocomplete: "current-password",
  });
  const submit = async (event) => {
    event.preventDefault();
    wrong.textContent = "";
    try {
      await enter(await post("/v1/session", { token: token.value }));
    } catch (problem) {
      wrong.textContent = problem.message;
      token.select();
    }
  };
  return h(
    "div",
    { class: "sign-in" },
    h(
      "form",
      { method: "post", onsubmit: submit },
      h("h1", { tabindex: "-1" }, "Sign in"),
      h("p", { class: "soft" }, "With one of this pipeline's tokens."),
      field("Token", token, "A viewer's token looks; an operator's also acts."),
      wrong,
      h("button", { type: "submit", class: "primary" }, "Sign in"),
    ),
  );
}
