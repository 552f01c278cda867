// The text: each word over its numbers, one for each model, coloured by the first.

import { bits, find, make, orderOf } from "./tools.js";

const MOST_BITS = 16; // the whole accent

/** Models that split a text alike are shown together. */
export function grouped(scores) {
  const groups = new Map();
  for (const score of scores) {
    const words = score.lines.map((line) => line.tokens.map((token) => token.token));
    const key = JSON.stringify(words);
    groups.set(key, [...(groups.get(key) ?? []), score]);
  }
  return [...groups.values()];
}

/** Show the text by each model; `choose` is called with the word that is chosen. */
export function showText(scores, about, choose) {
  const tokens = scores.flatMap((s) => s.lines.flatMap((line) => line.tokens));
  const orders = tokens.map(orderOf).filter((order) => order !== null);
  find("#shown").hidden = orders.length === 0;
  if (orders.length === 0) find("#shown input").checked = true;
  const view = find("#shown input:checked").value === "bits"
    ? surprisals() : orderView(Math.max(2, ...orders));
  showScale(view.labels);
  const groups = scores.some((s) => s.n_tokens) ? grouped(scores) : [];
  find("#scored").replaceChildren(
    ...groups.flatMap((group) => [
      ...(scores.length > 1 ? [namesOf(group)] : []),
      ...group[0].lines.map((line, i) => showLine(group, i, view, about, choose)),
    ]),
  );
  const first = find("#scored .token");
  if (first) first.tabIndex = 0;
  showTotals(scores, about);
}

/** Colours and numbers by surprisal. */
function surprisals() {
  return {
    number: (token) => bits(token.bits),
    heat: (token) => (token.bits === null ? 1 : Math.min(Math.max(token.bits, 0) / MOST_BITS, 1)),
    labels: ["0", "4", "8", "12", "16+ bits"],
  };
}

/** Colours and numbers by the words found: the fewer, the stronger. */
function orderView(most) {
  const labels = Array.from({ length: most }, (_, i) => `${most - i}`);
  labels[most - 1] = "1 word";
  return {
    number: (token) => `${orderOf(token) ?? "–"}`,
    heat: (token) => (orderOf(token) === null ? 0 : (most - orderOf(token)) / (most - 1)),
    labels,
  };
}

function showScale(labels) {
  find("#scale ol").replaceChildren(...labels.map((label) => make("li", {}, label)));
}

function namesOf(group) {
  const names = group.map((score) => score.model).join(", ");
  const where = group.length > 1 ? "Numbers, from top to bottom" : "Numbers";
  return make("p", { class: "hint" }, `${where}: ${names}`);
}

function showLine(group, i, view, about, choose) {
  const first = group[0].lines[i].tokens;
  const line = make("div", { class: "line" });
  first.forEach((token, position) => {
    const byModel = group.map((score) => score.lines[i].tokens[position]);
    // Without its boundary a line has the tokens that were typed.
    const { boundary } = about.models.find((model) => model.name === group[0].model);
    const isEnd = position === first.length - 1 && token.token === boundary;
    const button = make("button", {
      type: "button",
      class: `token${token.unknown ? " unknown" : ""}${isEnd ? " end" : ""}`,
      tabindex: "-1",
      "aria-pressed": "false",
      "aria-label": spoken(isEnd ? "end of the line" : token.token, group, byModel),
    });
    const word = make("span", { class: "word" }, isEnd ? "↵" : token.token);
    word.style.setProperty("--heat", view.heat(byModel[0]));
    button.append(word, ...byModel.map((own) => {
      const number = make("span", { class: "number" }, view.number(own));
      number.style.setProperty("--heat", view.heat(own));
      return number;
    }));
    button.addEventListener("click", () => choose({ group, line: i, position, isEnd }, button));
    line.append(button);
  });
  return line;
}

/** What a screen reader says of a word. */
function spoken(word, group, byModel) {
  const said = byModel.map((token, i) => {
    const name = group.length > 1 ? `${group[i].model} ` : "";
    const order = orderOf(token);
    const found = order === null ? "" : `, ${order} found`;
    return `${name}${token.bits === null ? "infinite" : bits(token.bits)} bits${found}`;
  });
  const unknown = byModel[0].unknown ? ", not in the vocabulary" : "";
  return `${word}: ${said.join("; ")}${unknown}`;
}

function showTotals(scores, about) {
  const rows = scores.map((score) => make(
    "tr", {},
    make("th", { scope: "row" }, score.model),
    make("td", {}, score.bits === null ? "∞" : bits(score.bits / score.n_tokens)),
    make("td", {}, score.perplexity === null ? "∞" : score.perplexity.toPrecision(4)),
    make("td", {}, `${score.n_tokens}`),
    make("td", {}, `${score.n_unknown}`),
  ));
  const hasText = scores.some((score) => score.n_tokens);
  find("#totals").hidden = !hasText;
  find("#totals tbody").replaceChildren(...rows);
  find("#unknown").hidden = scores.every((score) => score.n_unknown === 0);
  const sizes = new Set(about.models.map((model) => model.n_words));
  find("#differ").hidden = sizes.size === 1 && grouped(scores).length < 2;
  find("#summary").textContent = hasText
    ? scores.map((s) => `${s.model}: ${s.n_tokens} tokens, `
      + `${bits(s.bits)} bits in all`).join("; ") + "." : "";
}

/** One stop of the tab key for the whole text; arrows go from word to word. */
export function walkByArrows(container) {
  container.addEventListener("keydown", (event) => {
    const tokens = [...container.querySelectorAll(".token")];
    const here = tokens.indexOf(document.activeElement);
    const there = {
      ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: tokens.length - 1,
    }[event.key];
    if (here < 0 || tokens[there] === undefined) return;
    event.preventDefault();
    tokens[here].tabIndex = -1;
    tokens[there].tabIndex = 0;
    tokens[there].focus();
  });
}
