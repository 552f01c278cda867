// The words that a model expects, and what it says of the word that was chosen.

import { bar, bits, find, make, orderOf, percent, probability, spelt } from "./tools.js";

const WORDS_OF_CONTEXT = 8;
const FOUND = "Words of the longest n-gram that was found";

/** Show where the prediction is made, and what each word adds to that of `explained`. */
export function showContext(tokens, chosen, effects = [], explained = "") {
  const first = Math.max(0, tokens.length - WORDS_OF_CONTEXT);
  const most = Math.max(1, ...effects.map(Math.abs));
  const words = tokens.slice(first).flatMap((token, i) => {
    const effect = effects[i + effects.length - (tokens.length - first)] ?? null;
    const word = make("span", effect === null ? {} : {
      class: effect < 0 ? "less" : "more", title: `${bits(effect)} bits`,
    }, token);
    word.style.setProperty("--heat", Math.abs(effect) / most);
    return [word, " "];
  });
  if (first > 0) words.unshift("… ");
  if (tokens.length === 0) words.push("At the start of a line, ");
  find("#context").replaceChildren(...words, make("mark", {}, chosen ?? "\u2003?\u2003"));
  find("#effects").hidden = effects.length === 0 || tokens.length === 0;
  find("#effects").textContent = `The stronger a word is coloured, the more bits “${explained}” `
    + "would have without it; a word with a dotted line makes it less probable.";
}

/** Show what each model and each member says of the word that was chosen. */
export function showChosen(group, tokens, word) {
  const rows = group.flatMap((score, i) => {
    const token = tokens[i];
    const own = row(score.model, null, token.bits, token.order);
    const members = token.members.map((member, j) =>
      row(score.members[j], member.weight, member.bits, member.order, `part-${j % 5}`));
    return [own, ...members];
  });
  const hasMembers = tokens.some((token) => token.members.length);
  const hasOrders = tokens.some((token) => orderOf(token) !== null);
  const columns = ["", ...(hasMembers ? ["weight"] : []), "probability", "bits",
    ...(hasOrders ? ["found"] : [])];
  const table = make(
    "table", {},
    make("caption", {}, `How probable “${word}” is here`),
    make("thead", {}, make("tr", {}, ...columns.map((c) => make("th", { scope: "col" }, c)))),
    make("tbody", {}, ...rows.map((cells) => cells(hasMembers, hasOrders))),
  );
  find("#chosen").replaceChildren(table);
}

function row(name, weight, surprisal, order, part = null) {
  return (hasMembers, hasOrders) => make(
    "tr", {},
    make("th", { scope: "row" }, ...(part ? [make("span", { class: `key ${part}` })] : []), name),
    ...(hasMembers ? [make("td", {}, weight === null ? "" : `× ${weight.toFixed(2)}`)] : []),
    make("td", {}, percent(probability(surprisal))),
    make("td", {}, bits(surprisal)),
    ...(hasOrders ? [make("td", {}, order === null ? "" : `${order}`)] : []),
  );
}

/** Show the most probable words; the one that was chosen stands out among them. */
export function showExpected(expected, chosen, model) {
  const { members, words } = expected;
  const longest = words[0].probability || 1;
  const hasOrders = words.some((word) => orderOf(word) !== null);
  const heads = [
    make("th", { scope: "col" }, "word"),
    make("th", { scope: "col", colspan: "2" }, "probability"),
    ...(hasOrders ? [make("th", { scope: "col", title: FOUND }, "found")] : []),
    ...members.map((member, i) => make(
      "th", { scope: "col" },
      make("span", { class: `key part-${i % 5}` }), make("span", {}, member.name),
      make("br"), `×\u00a0${member.weight.toFixed(2)}`,
    )),
  ];
  const rows = words.map((word) => {
    const parts = members.length
      ? word.members.map((m, i) => m.probability * members[i].weight) : [word.probability];
    return make(
      "tr", { class: word.word === chosen ? "typed" : null },
      make("th", { scope: "row" }, spelt(word.word, model)),
      make("td", { class: "bar", "aria-hidden": "true" }, bar(parts, longest)),
      make("td", {}, percent(word.probability)),
      ...(hasOrders ? [make("td", {}, `${orderOf(word) ?? ""}`)] : []),
      ...word.members.map((member) => make("td", {}, percent(member.probability))),
    );
  });
  find("#expected").replaceChildren(make(
    "table", {},
    make("caption", {}, `The most probable words by ${expected.model}`),
    make("thead", {}, make("tr", {}, ...heads)),
    make("tbody", {}, ...rows),
  ));
  find("#parts").hidden = members.length === 0;
}
