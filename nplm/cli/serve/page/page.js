// The page: what is typed and chosen, asked of the server, and shown by its parts.

import { showChosen, showContext, showExpected } from "./expecting.js";
import { FeatureMap } from "./map.js";
import { showText, walkByArrows } from "./reading.js";
import { ask, bar, find, kindOf, later, make, spelt } from "./tools.js";

const PAUSE = 200; // milliseconds without a key before the server is asked
const about = await ask("models").catch(fail);
const state = { scores: [], chosen: null, similar: new Set() };
const asked = {}; // the request under way of each kind

/** Ask the server; a later request of the same kind takes the place of an earlier one. */
async function askOnly(kind, path, question) {
  asked[kind]?.abort();
  const own = (asked[kind] = new AbortController());
  const questions = Array.isArray(question) ? question : [question];
  const answers = await Promise.all(questions.map((q) => ask(path, q, own.signal)));
  return Array.isArray(question) ? answers : answers[0];
}

function fail(error) {
  if (error.name === "AbortError") return;
  find("#failure").textContent = error.message;
  find("#failure").hidden = false;
}

const succeed = () => { find("#failure").hidden = true; };
const chosenModel = () => about.models.find((m) => m.name === find("#model").value);

// -- the text and its next words -----------------------------------------------------

async function read() {
  const text = find("#text").value;
  state.scores = await askOnly(
    "score", "score", about.models.map((model) => ({ model: model.name, text })),
  );
  state.chosen = null;
  succeed();
  showText(state.scores, about, choose);
  await expect();
}

/** Choose a word of the text, or none if it was chosen before. */
function choose(chosen, button) {
  const isNew = button.getAttribute("aria-pressed") === "false";
  chooseNone();
  find(".token[tabindex='0']").tabIndex = -1;
  button.tabIndex = 0;
  if (isNew) {
    button.setAttribute("aria-pressed", "true");
    state.chosen = chosen;
    if (!isSplitBy(find("#model").value)) find("#model").value = chosen.group[0].model;
  }
  expect().catch(fail);
}

function chooseNone() {
  find(".token[aria-pressed='true']")?.setAttribute("aria-pressed", "false");
  state.chosen = null;
}

/** Whether a model splits the text as the one whose word is chosen. */
const isSplitBy = (name) => state.chosen.group.some((score) => score.model === name);

/** Show what the model expects at the word that is chosen, else after the text. */
async function expect() {
  const { chosen } = state;
  const model = find("#model").value;
  find("#chosen").hidden = chosen === null;
  if (chosen === null) {
    const line = find("#text").value.split("\n").at(-1);
    const scored = state.scores.find((score) => score.model === model)?.lines.at(-1);
    const tokens = scored && scored.text === line
      ? scored.tokens.map((token) => token.token) : [];
    const { boundary } = chosenModel();
    const before = tokens.at(-1) === boundary ? tokens.slice(0, -1) : tokens;
    showContext(before, null);
    await showNext({ model, text: line }, before, null, null);
    return;
  }
  const lines = chosen.group.map((score) => score.lines[chosen.line]);
  const tokens = lines[0].tokens.map((token) => token.token);
  const word = tokens[chosen.position];
  const shown = chosen.isEnd ? "end of the line" : word;
  const before = tokens.slice(0, chosen.position);
  showContext(before, shown);
  showChosen(chosen.group, lines.map((line) => line.tokens[chosen.position]), shown);
  await showNext({ model, text: lines[0].text, position: chosen.position }, before, shown, word);
}

/** Show the words that are expected, and what each word before them has to do with it. */
async function showNext(question, before, shown, word) {
  const effects = chosenModel().has_features;
  const expected = await askOnly("next", "next", { ...question, effects });
  const first = spelt(expected.words[0].word, chosenModel());
  showContext(before, shown, expected.effects, shown ?? first.textContent ?? first);
  showExpected(expected, word, chosenModel());
}

// -- similar words and the map ---------------------------------------------------------

const map = new FeatureMap(find("#map"), (word) => lookFor(word));

function lookFor(word) {
  find("#word").value = word;
  look().catch(fail);
}

/** Show the map of the chosen model, or of the first that has one. */
async function showMap() {
  const model = [chosenModel(), ...about.models].find((own) => own.has_features);
  find("#words").hidden = model === undefined;
  if (model === undefined || model === state.mapped) return;
  state.mapped = model;
  const { words, explained } = await askOnly("map", "map", { model: model.name });
  map.show(words, (word) => spelt(word, model));
  const share = explained ? `the first two principal components of their features, `
    + `${Math.round(100 * (explained[0] + explained[1]))}% of the variance` : "their features";
  find("#map-caption").textContent =
    `The ${words.length} most frequent words of ${model.name}: ${share}.`;
  find("#word").value ||= words.find(({ word }) => /^\p{L}{4,}$/u.test(word))?.word ?? "";
  await look();
}

/** Show the words like the one that is looked for, and those that begin with it. */
async function look() {
  const word = find("#word").value.trim();
  const matches = map.places.map((place) => place.word)
    .filter((other) => word !== "" && other !== word && other.startsWith(word));
  let [nearest, sentence] = [[], "Type a word of the model, or choose one on the map."];
  if (word !== "") {
    try {
      const question = { model: state.mapped.name, word };
      nearest = (await askOnly("nearest", "nearest", question)).words;
      sentence = `The words whose features are most like those of “${word}”, `
        + "with the cosine.";
    } catch (error) {
      if (error.name === "AbortError") return;
      sentence = error.message;
    }
    if (matches.length) sentence += ` Words on the map that begin with it: ${matches.length}.`;
  }
  find("#found").textContent = sentence;
  find("#nearest").replaceChildren(...nearest.map(showNeighbour));
  map.mark(word, new Set(nearest.map((own) => own.word)), new Set(nearest.length ? [] : matches));
}

function showNeighbour({ word, cosine }) {
  const length = bar([Math.max(cosine, 0)], 1);
  length.className = "bar";
  length.setAttribute("aria-hidden", "true");
  const button = make(
    "button", { type: "button" },
    make("span", { class: "word" }, spelt(word, state.mapped)), length,
    make("span", { class: "number" }, cosine.toFixed(2)),
  );
  button.addEventListener("click", () => lookFor(word));
  return make("li", {}, button);
}

// -- the beginning ---------------------------------------------------------------------

const said = about.models.map((model) =>
  `${model.name} (${kindOf(model)}, ${model.n_words.toLocaleString("en")} words)`);
find("#served").textContent = said.join(" · ");
find("#version").textContent = `nplm ${about.version}`;
find("#model").append(...about.models.map((model) => make("option", {}, model.name)));
find(".choice").hidden = about.models.length === 1;
find("#text").maxLength = about.max_text_chars;
find("#text").value = about.text;

const readSoon = later(() => read().catch(fail), PAUSE);
const lookSoon = later(() => look().catch(fail), PAUSE);
find("#text").addEventListener("input", readSoon);
find("#word").addEventListener("input", lookSoon);
find("#search").addEventListener("submit", (event) => {
  event.preventDefault();
  lookSoon();
});
find("#shown").addEventListener("change", () => {
  state.chosen = null;
  showText(state.scores, about, choose);
  expect().catch(fail);
});
find("#model").addEventListener("change", () => {
  if (state.chosen && !isSplitBy(find("#model").value)) chooseNone();
  expect().catch(fail);
  showMap().catch(fail);
});
find(".zoom").addEventListener("click", ({ target }) => {
  if (target.value !== undefined && target.value !== "") map.enlarge(Number(target.value));
});
walkByArrows(find("#scored"));
await Promise.all([read().catch(fail), showMap().catch(fail)]);
document.body.dataset.ready = "yes"; // for tests and pictures
