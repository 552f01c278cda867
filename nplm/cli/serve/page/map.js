// Features of words in two dimensions: points that can be searched, dragged and enlarged.

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = 28;
const LINE = 15; // height of a label, in pixels
const GAP = 4; // between two labels
const pen = document.createElement("canvas").getContext("2d");

export class FeatureMap {
  /** `choose` is called with the word of a point that is clicked. */
  constructor(svg, choose) {
    Object.assign(this, { svg, choose, places: [], zoom: 1, middle: [0, 0] });
    new ResizeObserver(() => this.draw()).observe(svg);
    this.drag();
  }

  /** `spell` gives the label of a word: text, or an element of it. */
  show(places, spell) {
    this.places = places.map((place) => {
      const label = spell(place.word);
      return { ...place, label: label.textContent ?? label, point: this.point(place.word, label) };
    });
    this.svg.replaceChildren(...this.places.map((place) => place.point));
    const middle = (values) => (Math.min(...values) + Math.max(...values)) / 2;
    const span = (values) => Math.max(...values) - Math.min(...values);
    const [x, y] = [places.map((p) => p.x), places.map((p) => p.y)];
    this.centre = [middle(x), middle(y)];
    this.spans = [span(x), span(y)];
    this.enlarge(0);
  }

  point(word, label) {
    const point = document.createElementNS(SVG, "g");
    const [circle, text] = ["circle", "text"].map((tag) => document.createElementNS(SVG, tag));
    circle.setAttribute("r", 3);
    text.textContent = label.textContent ?? label;
    if (label.className) point.classList.add(label.className);
    point.append(circle, text);
    point.addEventListener("click", () => this.choose(word));
    return point;
  }

  /** Mark the chosen word, words like it, and those that match a search. */
  mark(chosen, similar, matches) {
    for (const place of this.places) {
      const { classList } = place.point;
      classList.toggle("chosen", place.word === chosen);
      classList.toggle("similar", similar.has(place.word));
      classList.toggle("match", matches.has(place.word));
    }
    // What is drawn last lies on top.
    this.svg.append(...this.svg.querySelectorAll(".match, .similar, .chosen"));
    const place = this.places.find((own) => own.word === chosen);
    if (place && this.zoom > 1) this.middle = [place.x, place.y];
    this.draw();
  }

  /** Enlarge by a factor, around the chosen word if it is in sight; 0 shows all. */
  enlarge(factor) {
    this.zoom = Math.max(1, Math.min(this.zoom * factor, 40));
    const chosen = this.places.find((place) => place.point.classList.contains("chosen"));
    if (this.zoom === 1) this.middle = this.centre;
    else if (chosen && factor > 1) this.middle = [chosen.x, chosen.y];
    this.svg.classList.toggle("near", this.zoom > 1);
    this.draw();
  }

  drag() {
    let last = null;
    this.svg.addEventListener("pointerdown", (event) => {
      last = this.zoom > 1 ? event : null;
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (last === null || event.buttons === 0) return;
      const [x, y] = this.middle;
      this.middle = [
        x - (event.clientX - last.clientX) / this.scale,
        y + (event.clientY - last.clientY) / this.scale,
      ];
      last = event;
      this.draw();
    });
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.svg;
    if (this.places.length === 0 || width === 0) return;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.scale = this.zoom * Math.min(
      (width - 2 * MARGIN) / (this.spans[0] || 1), (height - 2 * MARGIN) / (this.spans[1] || 1),
    );
    const taken = [];
    // Marked words get their labels first, then the frequent ones.
    const rank = ({ point }) => ["chosen", "similar", "match"]
      .findIndex((mark) => point.classList.contains(mark)) >>> 0;
    const ordered = this.places.toSorted((one, two) => rank(one) - rank(two));
    const { fontFamily, fontSize } = getComputedStyle(this.svg.querySelector("text"));
    for (const place of ordered) {
      const x = width / 2 + (place.x - this.middle[0]) * this.scale;
      const y = height / 2 - (place.y - this.middle[1]) * this.scale;
      place.point.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
      const weight = rank(place) < 3 ? "bold" : "normal";
      pen.font = `${weight} ${fontSize} ${fontFamily}`;
      const room = pen.measureText(place.label).width + GAP;
      const isLeft = x + 6 + room > width;
      const left = isLeft ? x - 6 - room : x + 6;
      const box = [left, y - LINE / 2, left + room, y + LINE / 2];
      const isSeen = x > 0 && x < width && y > 0 && y < height;
      const isFree = isSeen && !taken.some((other) => overlap(box, other));
      if (isFree) taken.push(box);
      place.point.classList.toggle("bare", !isFree);
      const text = place.point.lastChild;
      text.setAttribute("x", isLeft ? -6 : 6);
      text.setAttribute("y", 4);
      text.setAttribute("text-anchor", isLeft ? "end" : "start");
    }
  }
}

const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
