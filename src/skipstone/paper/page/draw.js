// Pictures of one moment. Everything follows from the data and the time, so that scrubbing
// backwards shows what playing showed.

const FLASH = 0.035; // How long an update glows, as a share of the whole replay.
const PIECES = 36; // A trail fades in so many steps.
const PALEST = 0.12; // How strong a trail is at its beginning; it ends at 1.
const TONES = [1, 0.5, 0.3]; // Balls of a panel differ in tone: colours are for models.
const POINT = 0.022; // Radius of what is only a point, as a share of the box.
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

// How many of these increasing times have come.
function countUntil(times, time) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time + 1e-9) low = middle + 1;
    else high = middle;
  }
  return low;
}

// How bright the last update still is: 1 when it happens, 0 when it is over.
function glow(times, time, length) {
  const last = countUntil(times, time) - 1;
  return last < 0 ? 0 : Math.max(0, 1 - (time - times[last]) / (FLASH * length));
}

// Where things are at a time: on the line between the two nearest moments.
function between(moments, rows, time) {
  const after = Math.min(Math.max(countUntil(moments, time), 1), moments.length - 1);
  const start = moments[after - 1];
  const share = Math.min(Math.max((time - start) / (moments[after] - start), 0), 1);
  return rows[after - 1].map((x, i) => x + share * (rows[after][i] - x));
}

// A canvas as sharp as the screen, its unit a CSS pixel.
function prepare(canvas) {
  const side = canvas.clientWidth;
  const scale = window.devicePixelRatio || 1;
  const pixels = Math.round(side * scale);
  if (canvas.width !== pixels) canvas.width = canvas.height = pixels;
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, side, side);
  return [pen, side];
}

// Data to pixels, and the places of balls: in the plane, or on a line over time.
function projection(example, side) {
  const [left, bottom, right, top] = example.box;
  const inset = example.radius ? 1 : 0;
  const span = side - 2 * inset;
  const x = (value) => inset + (span * (value - left)) / (right - left);
  const y = (value) => side - inset - (span * (value - bottom)) / (top - bottom);
  const plane = example.kind === "plane";
  return {
    length: (value) => (span * value) / (top - bottom),
    balls: example.truth[0].length / (plane ? 2 : 1),
    place: (row, ball, time) =>
      plane ? [x(row[2 * ball]), y(row[2 * ball + 1])] : [x(time), y(row[ball])],
  };
}

function disc(pen, [x, y], radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
}

function drawTrail(pen, places, colour, tone) {
  pen.strokeStyle = colour;
  pen.lineJoin = "round";
  const size = Math.max(1, Math.ceil((places.length - 1) / PIECES));
  for (let start = 0; start < places.length - 1; start += size) {
    const end = Math.min(start + size, places.length - 1);
    pen.globalAlpha = (PALEST + ((1 - PALEST) * end) / (places.length - 1)) * Math.max(tone, 0.6);
    pen.beginPath();
    for (let i = start; i <= end; i++) pen.lineTo(...places[i]);
    pen.stroke();
  }
  pen.globalAlpha = 1;
}

function drawBall(pen, place, radius, colour, tone, surface) {
  disc(pen, place, radius);
  pen.fillStyle = surface;
  pen.fill();
  pen.globalAlpha = 0.85 * tone;
  pen.fillStyle = colour;
  pen.fill();
  pen.globalAlpha = 1;
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5;
  pen.stroke();
}

// The ring of an update: it leaves the ball and fades, or only fades where motion is unwelcome.
function drawRing(pen, place, radius, strength, colour) {
  disc(pen, place, radius + 3 + (STILL.matches ? 2 : 11 * (1 - strength)));
  pen.globalAlpha = strength;
  pen.strokeStyle = colour;
  pen.lineWidth = 4.5;
  pen.stroke();
  pen.globalAlpha = 1;
}

function drawPocket(pen, view, [x, y, reach], look) {
  disc(pen, view.place([x, y], 0, 0), view.length(reach));
  pen.fillStyle = look.line;
  pen.fill();
}

// Where truth is, in a model's panel, once the model is on its own.
function drawGhost(pen, view, row, time, radius, look) {
  pen.setLineDash([3, 3]);
  pen.strokeStyle = look.soft;
  pen.lineWidth = 1.2;
  for (let ball = 0; ball < view.balls; ball++) {
    disc(pen, view.place(row, ball, time), radius);
    pen.stroke();
  }
  pen.setLineDash([]);
}

// Small marks on the path wherever the model updated.
function drawUpdates(pen, view, track, example, time, look) {
  pen.strokeStyle = look.colour;
  pen.fillStyle = look.surface;
  pen.lineWidth = 1.4;
  for (const update of track.updates.slice(0, countUntil(track.updates, time))) {
    const row = between(example.moments, track.rows, update);
    for (let ball = 0; ball < view.balls; ball++) {
      disc(pen, view.place(row, ball, update), 2.6);
      pen.fill();
      pen.stroke();
    }
  }
}

// Observations that the model is given.
function drawGiven(pen, view, example, time, look) {
  pen.fillStyle = look.soft;
  for (const given of example.observed) {
    if (given > Math.min(time, example.context) + 1e-9) break;
    const row = between(example.moments, example.truth, given);
    for (let ball = 0; ball < view.balls; ball++) {
      disc(pen, view.place(row, ball, given), 2);
      pen.fill();
    }
  }
}

// Which balls to ring, and how brightly: all at a model's update, those that met at a collision.
function flashes(track, example, time, balls) {
  const length = example.end - example.start;
  if (track.model) {
    const strength = glow(track.updates, time, length);
    return Array(balls).fill(strength);
  }
  const bright = Array(balls).fill(0);
  for (const collision of example.collisions) {
    if (collision.time > time + 1e-9) break;
    for (const ball of collision.balls) bright[ball] = glow([collision.time], time, length);
  }
  return bright;
}

function drawPaths(canvas, example, track, time, look) {
  const [pen, side] = prepare(canvas);
  const view = projection(example, side);
  const point = example.radius === null;
  const radius = point ? POINT * side : view.length(example.radius);
  const now = between(example.moments, track.rows, time);
  const past = countUntil(example.moments, time);
  if (example.pocket) drawPocket(pen, view, example.pocket, look);
  for (let ball = 0; ball < view.balls; ball++) {
    const places = [];
    for (let i = 0; i < past; i++) places.push(view.place(track.rows[i], ball, example.moments[i]));
    places.push(view.place(now, ball, time));
    pen.lineWidth = 2.2;
    drawTrail(pen, places, look.colour, TONES[ball % TONES.length]);
  }
  if (track.model) {
    drawGiven(pen, view, example, time, look);
    drawUpdates(pen, view, track, example, time, look);
  }
  const bright = flashes(track, example, time, view.balls);
  for (let ball = 0; ball < view.balls; ball++) {
    const place = view.place(now, ball, time);
    const colour = track.model && time < example.context ? look.soft : look.colour;
    drawBall(pen, place, radius, colour, TONES[ball % TONES.length], look.surface);
    if (bright[ball] > 0) drawRing(pen, place, radius, bright[ball], look.flash);
  }
  if (track.model && time > example.context) {
    const truth = between(example.moments, example.truth, time);
    drawGhost(pen, view, truth, time, radius, look);
  }
  drawWalls(pen, side, example.radius === null ? look.faint : look.wall);
}

function drawWalls(pen, side, colour) {
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.beginPath();
  pen.roundRect(1, 1, side - 2, side - 2, 7);
  pen.stroke();
}

// An image has no balls to ring, so its frame lights up.
function drawFilm(canvas, example, track, time, look) {
  const [pen, side] = prepare(canvas);
  const index = Math.max(0, countUntil(example.moments, time) - 1);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(filmImage(track.frames[index], example.side), 0, 0, side, side);
  const strength = Math.max(...flashes(track, example, time, example.balls));
  if (strength <= 0) return;
  pen.globalAlpha = strength;
  pen.strokeStyle = look.flash;
  pen.lineWidth = 10;
  pen.beginPath();
  pen.roundRect(0, 0, side, side, 8);
  pen.stroke();
  pen.globalAlpha = 1;
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
