// The panels of an example: their data, and the elements of the page that show them.

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// One row for every moment: coordinates, or the bytes of an image.
function readRows({ kind, side }, content) {
  if (kind !== "film") return content.map((row) => row.map((x) => x ?? NaN));
  const [bytes, size] = [bytesOf(content), side ** 2];
  return Array.from({ length: bytes.length / size }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
}

// Before its prediction starts, a model shows what it observes.
function readExample(data) {
  const truth = readRows(data, data.truth);
  const models = data.models.map(({ title, values, first, updates }) => ({
    model: title,
    rows: [...truth.slice(0, first), ...readRows(data, values)],
    updates,
  }));
  return {
    ...data,
    truth,
    tracks: [{ rows: truth, updates: data.collisions.map((hit) => hit.time) }, ...models],
    start: data.moments[0],
    end: data.observed[data.observed.length - 1],
    balls: 1 + Math.max(0, ...data.collisions.flatMap((hit) => hit.balls)),
  };
}

function element(tag, classes = "", text = "") {
  const made = document.createElement(tag);
  made.className = classes;
  made.textContent = text;
  return made;
}

// A strip of time under a panel: what is given, and a mark for each update or collision.
function fillStrip(strip, example, track) {
  strip.replaceChildren();
  const share = (time) => `${(100 * (time - example.start)) / (example.end - example.start)}%`;
  if (track.model) {
    const given = strip.appendChild(element("span", "given"));
    given.style.width = share(example.context);
  }
  const marks = track.updates.map((time, i) => {
    const wall = !track.model && example.collisions[i].wall;
    const mark = element("i", track.model ? "tick" : wall ? "hit wall" : "hit");
    mark.style.left = share(time);
    return strip.appendChild(mark);
  });
  const head = strip.appendChild(element("span", "head"));
  const move = (time) => (head.style.left = share(time));
  return { marks, move };
}

function makePanel(example, track) {
  const figure = element("figure", `panel ${example.kind}`);
  if (track.model) figure.dataset.model = track.model;
  const header = figure.appendChild(element("header"));
  header.appendChild(element("h3", "", track.model || "Truth"));
  const count = header.appendChild(element("span", "count"));
  const stage = figure.appendChild(element("div", "stage"));
  const canvas = stage.appendChild(element("canvas", "picture"));
  canvas.setAttribute("role", "img");
  const described = track.model ? `what ${track.model} predicts` : "what truly happens";
  canvas.setAttribute("aria-label", `${example.task}: ${described}`);
  const strip = figure.appendChild(element("div", "strip"));
  strip.setAttribute("aria-hidden", "true");
  const phase = figure.appendChild(element("p", "phase"));
  return { figure, stage, count, canvas, strip, phase };
}

// What a panel shows, which can be exchanged.
function setTrack(panel, example, track) {
  Object.assign(panel, { track, ...fillStrip(panel.strip, example, track) });
}

function makeKey({ labels, models, kind, collisions, start, context }) {
  const entries = labels.map((label, ball) => [ball ? "pale" : "ball", label]);
  if (models.length) {
    entries.push(["ring", "something happens"]);
    if (kind !== "film") entries.push(["ghost", "where truth is"]);
    if (context > start) entries.push(["hatch", "observations a model is given"]);
  }
  if (collisions.some((hit) => !hit.wall)) entries.push(["met", "balls collide"]);
  if (collisions.some((hit) => hit.wall)) entries.push(["wall", "a ball meets a wall"]);
  const list = element("ul", "key");
  for (const [mark, text] of entries) list.appendChild(element("li")).append(element("i", mark), text);
  return list;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function showCount({ track, count }, lit) {
  const total = track.updates.length;
  const what = track.model ? "update" : "collision";
  const some = [String(lit), ` of ${total} ${what}${total === 1 ? "" : "s"}`];
  const none = track.model ? "computing" : "no collisions"; // A model that has begun has an update.
  const [number, rest] = total ? some : ["", none];
  if (count.textContent !== number + rest) count.replaceChildren(element("b", "", number), rest);
}

function lightMarks({ track, marks }, { start, end }, time, lit) {
  const bright = glow(track.updates, time, end - start) > 0;
  marks.forEach((mark, i) => {
    mark.classList.toggle("lit", i < lit);
    mark.classList.toggle("now", bright && i === lit - 1);
  });
}

// Colours come from the style sheet, which knows about light and dark.
function readLook(figure) {
  const root = getComputedStyle(document.documentElement);
  const look = { colour: getComputedStyle(figure).color };
  for (const name of ["table", "soft", "line", "faint", "flash"])
    look[name] = root.getPropertyValue(`--${name}`).trim();
  return look;
}

function paintPanel(panel, example, time) {
  const paint = example.kind === "film" ? drawFilm : drawPaths;
  // Before the page is laid out there is nothing to paint on; the viewer paints when there is.
  if (panel.canvas.clientWidth > 0) paint(panel.canvas, example, panel.track, time, panel.look);
  const lit = countUntil(panel.track.updates, time);
  lightMarks(panel, example, time, lit);
  showCount(panel, lit);
  panel.move(time);
  const observing = time < example.context;
  setText(panel.phase, panel.track.model ? (observing ? "observing" : "predicting") : "");
}
