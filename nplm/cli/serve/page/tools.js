// What all parts of the page use: requests, elements, numbers as text.

/** Ask the API; throw an Error with its sentence if it refuses. */
export async function ask(path, question, signal) {
  const options = question === undefined ? { signal } : {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(question),
    signal,
  };
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer: is nplm serve still running?");
  }
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

/** Make an element with attributes, and with elements or texts inside. */
export function make(tag, attributes = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) element.setAttribute(name, value);
  }
  element.append(...inside);
  return element;
}

export const find = (selector) => document.querySelector(selector);

/** A function that calls another once its own calls have ceased for some milliseconds. */
export function later(act, milliseconds) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(act, milliseconds, ...given);
  };
}

/** Bits with one decimal; the API has null for infinity. */
export const bits = (number) => (number === null ? "∞" : number.toFixed(1));

/** A probability with two digits. */
export function percent(probability) {
  const number = 100 * probability;
  if (number > 0 && number < 0.0001) return "<0.0001%";
  return `${number >= 9.95 || number === 0 ? number.toFixed(0) : number.toPrecision(2)}%`;
}

export const probability = (surprisal) => (surprisal === null ? 0 : 2 ** -surprisal);

/** The length of the n-gram found by a model, or else by the first member that has one. */
export const orderOf = (found) =>
  found.order ?? found.members.find((member) => member.order !== null)?.order ?? null;

/** The word of a symbol as people say it, muted; any other word as it is. */
export function spelt(word, model) {
  const said = new Map([[model.boundary, "end"], [model.unknown, "unknown word"]]).get(word);
  return said === undefined ? word : make("span", { class: "muted", title: word }, said);
}

/** What people call the models of a class. */
const KINDS = new Map(Object.entries({
  KneserNeyLM: "Kneser-Ney n-grams", BackoffLM: "back-off n-grams",
  InterpolatedTrigram: "interpolated trigram", ClassLM: "class n-grams",
  QuantizedLM: "quantized n-grams", KenlmLM: "KenLM n-grams", NeuralLM: "neural network",
  EnergyLM: "energy network", ShortlistLM: "short-list network", MixtureLM: "mixture",
  CacheLM: "cache", NeuralCacheLM: "neural cache", UniformLM: "uniform probabilities",
}));
export const kindOf = (model) => KINDS.get(model.kind) ?? model.kind;

/** The bar of a word: its probability, in parts if it is that of a mixture. */
export function bar(parts, longest) {
  const inside = parts.map((part, i) => {
    const piece = make("i", { class: `part-${i % 5}` });
    piece.style.width = `${(100 * part) / longest}%`;
    return piece;
  });
  return make("div", {}, ...inside);
}
