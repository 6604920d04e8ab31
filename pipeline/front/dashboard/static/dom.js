// Builds elements, and brings those on the page up to date. Data becomes text nodes and attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. `onclick` and the like are functions; `style` is an object; null and false leave out. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** An SVG element. */
export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  append(element, children);
  for (const [name, value] of Object.entries(props ?? {})) set(element, name, value);
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element[name] = value;
  else if (name === "style") for (const [key, part] of Object.entries(value)) element.style.setProperty(key, part);
  else if (name === "value") {
    element.value = value;
    element.wanted = value;
  } else element.setAttribute(name, value === true ? "" : String(value));
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Makes `parent` hold what `children` say, changing only what differs: focus, selection and scroll stay. */
export function patch(parent, ...children) {
  const wanted = document.createDocumentFragment();
  append(wanted, children);
  patchChildren(parent, wanted);
}

const keyOf = (node) => node?.dataset?.key;

function patchChildren(parent, wanted) {
  const keyed = new Map([...parent.children].filter(keyOf).map((node) => [keyOf(node), node]));
  let place = parent.firstChild;
  for (const node of [...wanted.childNodes]) {
    const key = keyOf(node);
    const found = key ? keyed.get(key) : !keyOf(place) && place;
    if (!found || found.nodeName !== node.nodeName) {
      parent.insertBefore(node, place);
      continue;
    }
    keyed.delete(key);
    if (found === place) place = place.nextSibling;
    else parent.insertBefore(found, place);
    morph(found, node);
  }
  while (place) {
    const gone = place;
    place = place.nextSibling;
    gone.remove();
  }
}

function morph(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    // What the reader opened stays open; styles may only be set through the object model under our policy.
    if (!fresh.hasAttribute(name) && name !== "open" && name !== "style") old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name !== "style" && name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.style && old.style.cssText !== fresh.style.cssText) old.style.cssText = fresh.style.cssText;
  for (const name of ["onclick", "onchange", "onsubmit", "onpointermove", "onpointerleave"]) old[name] = fresh[name];
  patchChildren(old, fresh);
  // What somebody typed stays, unless the page itself now wants another value.
  if (fresh.wanted !== undefined && fresh.wanted !== old.wanted) {
    old.value = old.wanted = fresh.wanted;
  }
}
