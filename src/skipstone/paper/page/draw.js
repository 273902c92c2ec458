// Pictures of one moment on a canvas. Everything follows from the data and the time, so that
// scrubbing backwards shows what playing showed.

const FLASH = 0.035; // How long an update glows, as a share of the whole replay.
const PIECES = 36; // A trail fades in so many steps.
const PALEST = 0.12; // How strong a trail is at its beginning; it ends at 1.
const TONES = [1, 0.5, 0.3]; // Balls of a panel differ in tone: colours are for models.
const AHEAD = 0.4; // How strong a path is that is still to come.
const POINT = 0.022; // Radius of what is only a point, as a share of the box.
const SLACK = 1e-9; // Times this much later than a moment are rounding.
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// How many of these increasing times have come.
function countUntil(times, time) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time + SLACK) low = middle + 1;
    else high = middle;
  }
  return low;
}

// How bright the last update still is: 1 when it happens, 0 when it is over.
function glow(times, time, length) {
  const last = countUntil(times, time) - 1;
  return last < 0 ? 0 : Math.max(0, 1 - (time - times[last]) / (FLASH * length));
}

// The row at a time, interpolated between the two nearest moments.
function between(moments, rows, time) {
  const after = clamp(countUntil(moments, time), 1, moments.length - 1);
  const start = moments[after - 1];
  const share = clamp((time - start) / (moments[after] - start), 0, 1);
  return rows[after - 1].map((x, i) => x + share * (rows[after][i] - x));
}

// A canvas as sharp as the screen, its unit a CSS pixel.
function prepare(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const scale = window.devicePixelRatio || 1;
  const [across, down] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down];
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  return [pen, width, height];
}

// Data to pixels: lengths, and the places of all balls, in the plane or on a line over time.
function projection({ box, radius, kind }, side) {
  const [left, bottom, right, top] = box;
  const inset = radius ? 1 : 0;
  const span = side - 2 * inset;
  const x = (value) => inset + (span * (value - left)) / (right - left);
  const y = (value) => side - inset - (span * (value - bottom)) / (top - bottom);
  const pairs = (row) => row.flatMap((_, i) => (i % 2 ? [] : [[x(row[i]), y(row[i + 1])]]));
  return {
    length: (value) => (span * value) / (top - bottom),
    places: (row, time) => (kind === "plane" ? pairs(row) : row.map((value) => [x(time), y(value)])),
  };
}

// Fill or stroke what `trace` draws, or both.
function paintShape(pen, { fill, stroke, width = 1.5, alpha = 1, dash = [] }, trace) {
  pen.save();
  pen.globalAlpha = alpha;
  pen.beginPath();
  trace();
  if (fill) {
    pen.fillStyle = fill;
    pen.fill();
  }
  if (stroke) {
    Object.assign(pen, { strokeStyle: stroke, lineWidth: width, lineJoin: "round" });
    pen.setLineDash(dash);
    pen.stroke();
  }
  pen.restore();
}

function drawDisc(pen, [x, y], radius, style) {
  paintShape(pen, style, () => pen.arc(x, y, radius, 0, 2 * Math.PI));
}

function drawFrame(pen, side, inset, corner, style) {
  const length = side - 2 * inset;
  paintShape(pen, style, () => pen.roundRect(inset, inset, length, length, corner));
}

function drawTrail(pen, places, colour, tone) {
  const last = places.length - 1;
  const size = Math.max(1, Math.ceil(last / PIECES));
  for (let start = 0; start < last; start += size) {
    const end = Math.min(start + size, last);
    const alpha = (PALEST + ((1 - PALEST) * end) / last) * Math.max(tone, 0.6);
    paintShape(pen, { stroke: colour, width: 2.2, alpha }, () => {
      for (let i = start; i <= end; i++) pen.lineTo(...places[i]);
    });
  }
}

// Whole paths at once, as far as they are known: what lies ahead, or what was only imagined.
function drawWays(pen, view, rows, colour, alpha) {
  const places = rows.map((row) => view.places(row));
  (places[0] ?? []).forEach((_, ball) =>
    paintShape(pen, { stroke: colour, width: 1.6, alpha }, () => {
      for (const at of places) pen.lineTo(...at[ball]);
    }),
  );
}

function drawBall(pen, place, radius, colour, tone, surface) {
  drawDisc(pen, place, radius, { fill: surface });
  drawDisc(pen, place, radius, { fill: colour, alpha: 0.85 * tone });
  drawDisc(pen, place, radius, { stroke: colour });
}

// The ring of an update: it leaves the ball and fades, or only fades where motion is unwelcome.
function drawRing(pen, place, radius, strength, colour) {
  const reach = radius + 3 + (STILL.matches ? 2 : 11 * (1 - strength));
  drawDisc(pen, place, reach, { stroke: colour, width: 4.5, alpha: strength });
}

// Small marks on paths at some times.
function drawDots(pen, view, { moments }, rows, times, radius, style) {
  for (const time of times)
    for (const place of view.places(between(moments, rows, time), time))
      drawDisc(pen, place, radius, style);
}

// Which balls to ring, and how brightly: all at a model's update, those that met at a collision.
function flashes(track, example, time, balls) {
  const length = example.end - example.start;
  if (track.model) return Array(balls).fill(glow(track.updates, time, length));
  const bright = Array(balls).fill(0);
  for (const collision of example.collisions) {
    if (collision.time > time + SLACK) break;
    for (const ball of collision.balls) bright[ball] = glow([collision.time], time, length);
  }
  return bright;
}

function drawPaths(canvas, example, track, time, look) {
  const [pen, side] = prepare(canvas);
  const view = projection(example, side);
  const { moments, observed, context, pocket } = example;
  const open = example.radius === null;
  const radius = open ? POINT * side : view.length(example.radius);
  const now = view.places(between(moments, track.rows, time), time);
  const past = track.rows.slice(0, countUntil(moments, time));
  const places = [...past.map((row, i) => view.places(row, moments[i])), now];
  const tone = (ball) => TONES[ball % TONES.length];
  if (pocket) {
    const [[centre], reach] = [view.places(pocket.slice(0, 2)), view.length(pocket[2])];
    drawDisc(pen, centre, reach, { fill: look.line });
  }
  for (const { rows, strength } of track.candidates ?? []) drawWays(pen, view, rows, look.colour, strength);
  // Where an example may still be changed, its future is shown.
  if (track.ahead && time <= example.start) drawWays(pen, view, track.rows, look.colour, AHEAD);
  now.forEach((_, ball) => drawTrail(pen, places.map((at) => at[ball]), look.colour, tone(ball)));
  if (track.model) {
    const given = observed.slice(0, countUntil(observed, Math.min(time, context)));
    drawDots(pen, view, example, example.truth, given, 2, { fill: look.soft });
    const updates = track.updates.slice(0, countUntil(track.updates, time));
    const mark = { fill: look.table, stroke: look.colour, width: 1.4 };
    drawDots(pen, view, example, track.rows, updates, 2.6, mark);
  }
  const bright = flashes(track, example, time, now.length);
  const colour = track.model && time < context ? look.soft : look.colour;
  now.forEach((place, ball) => {
    drawBall(pen, place, radius, colour, tone(ball), look.table);
    if (bright[ball] > 0) drawRing(pen, place, radius, bright[ball], look.flash);
  });
  // Where truth is, in a model's panel, once the model is on its own.
  if (track.model && time > context) {
    const ghost = { stroke: look.soft, width: 1.2, dash: [3, 3] };
    drawDots(pen, view, example, example.truth, [time], radius, ghost);
  }
  drawFrame(pen, side, 1, 7, { stroke: open ? look.faint : look.soft, width: 2 });
}

// An image has no balls to ring, so its frame lights up.
function drawFilm(canvas, example, track, time, look) {
  const [pen, side] = prepare(canvas);
  const index = Math.max(0, countUntil(example.moments, time) - 1);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(filmImage(track.rows[index], example.side), 0, 0, side, side);
  const alpha = Math.max(...flashes(track, example, time, example.balls));
  if (alpha > 0) drawFrame(pen, side, 0, 8, { stroke: look.flash, width: 10, alpha });
}

const small = document.createElement("canvas");

function filmImage(bytes, side) {
  small.width = small.height = side;
  const pen = small.getContext("2d");
  const image = pen.createImageData(side, side);
  bytes.forEach((grey, i) => image.data.set([grey, grey, grey, 255], 4 * i));
  pen.putImageData(image, 0, 0);
  return small;
}
