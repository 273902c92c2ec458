// The panels of an example: what to draw in them, and the page's elements that hold it.

// What is drawn of a track: rows of coordinates, or frames of a film, for every moment.
function readTrack(example, content, truth, first) {
  if (example.kind !== "film") {
    const rows = content.map((row) => row.map((x) => (x === null ? NaN : x)));
    return { rows: truth ? [...truth.rows.slice(0, first), ...rows] : rows };
  }
  const bytes = Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
  const size = example.side ** 2;
  const frames = [];
  for (let i = 0; i < bytes.length; i += size) frames.push(bytes.subarray(i, i + size));
  return { frames: truth ? [...truth.frames.slice(0, first), ...frames] : frames };
}

// Before its prediction starts, a model shows what it observes.
function readExample(data) {
  const truth = readTrack(data, data.truth);
  const models = data.models.map((model) => ({
    ...readTrack(data, model.values, truth, model.first),
    model: model.title,
    updates: model.updates,
  }));
  return {
    ...data,
    truth: truth.rows,
    tracks: [{ ...truth, updates: data.collisions.map((hit) => hit.time) }, ...models],
    start: data.moments[0],
    end: data.observed[data.observed.length - 1],
    balls: 1 + Math.max(0, ...data.collisions.flatMap((hit) => hit.balls)),
  };
}

function element(tag, classes, text = "") {
  const made = document.createElement(tag);
  made.className = classes;
  made.textContent = text;
  return made;
}

function makeTab(example) {
  const tab = element("button", "", example.task);
  tab.type = "button";
  return tab;
}

// A strip of time under a panel: what is given, and a mark for each update or collision.
function makeStrip(example, track) {
  const strip = element("div", "strip");
  strip.setAttribute("aria-hidden", "true");
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
  return { strip, marks, move };
}

function makePanel(example, track) {
  const figure = element("figure", `panel ${example.kind}`);
  if (track.model) figure.dataset.model = track.model;
  const header = figure.appendChild(element("header", ""));
  header.appendChild(element("h3", "", track.model || "Truth"));
  const count = header.appendChild(element("span", "count"));
  const canvas = figure.appendChild(element("canvas", "picture"));
  canvas.setAttribute("role", "img");
  const described = track.model ? `what ${track.model} predicts` : "what truly happens";
  canvas.setAttribute("aria-label", `${example.task}: ${described}`);
  const { strip, marks, move } = makeStrip(example, track);
  figure.appendChild(strip);
  const phase = figure.appendChild(element("p", "phase"));
  return { figure, track, count, canvas, marks, move, phase };
}

function makeKey(example) {
  const list = element("ul", "key");
  const add = (kind, text) => {
    const item = list.appendChild(element("li", ""));
    item.append(element("i", kind), text);
  };
  example.labels.forEach((label, ball) => add(ball ? "pale" : "ball", label));
  if (example.models.length) {
    add("ring", "something happens");
    if (example.kind !== "film") add("ghost", "where truth is");
    add("hatch", "observations a model is given");
  }
  if (example.collisions.some((hit) => !hit.wall)) add("met", "balls collide");
  if (example.collisions.some((hit) => hit.wall)) add("wall", "a ball meets a wall");
  return list;
}

function countText(track, lit) {
  const total = track.updates.length;
  if (!total && !track.model) return ["", "no collisions"];
  const what = track.model ? "update" : "collision";
  return [String(lit), ` of ${total} ${what}${total === 1 ? "" : "s"}`];
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function showCount(panel, lit) {
  const [number, rest] = countText(panel.track, lit);
  if (panel.count.textContent === number + rest) return;
  panel.count.replaceChildren(element("b", "", number), rest);
}

function lightMarks(panel, example, time) {
  const lit = countUntil(panel.track.updates, time);
  const bright = glow(panel.track.updates, time, example.end - example.start) > 0;
  panel.marks.forEach((mark, i) => {
    mark.classList.toggle("lit", i < lit);
    mark.classList.toggle("now", bright && i === lit - 1);
  });
  showCount(panel, lit);
}

// Colours come from the style sheet, which knows about light and dark.
function readLook(figure) {
  const root = getComputedStyle(document.documentElement);
  const named = (name) => root.getPropertyValue(name).trim();
  return {
    colour: getComputedStyle(figure).color,
    surface: named("--table"),
    soft: named("--soft"),
    line: named("--line"),
    faint: named("--faint"),
    wall: named("--soft"),
    flash: named("--palette-3"),
  };
}

function paintPanel(panel, example, time) {
  const paint = example.kind === "film" ? drawFilm : drawPaths;
  // Before the page is laid out there is nothing to paint on; the viewer paints when there is.
  if (panel.canvas.clientWidth > 0) paint(panel.canvas, example, panel.track, time, panel.look);
  lightMarks(panel, example, time);
  panel.move(time);
  const observing = time < example.context;
  setText(panel.phase, panel.track.model ? (observing ? "observing" : "predicting") : "");
}
