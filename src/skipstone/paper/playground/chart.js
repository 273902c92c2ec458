// Error over time, on a logarithmic scale.

const LOWEST = 1e-4;
const HIGHEST = 1;
const EDGE = { left: 54, right: 12, top: 8, bottom: 28 };
const GRID = [1e-4, 1e-3, 1e-2, 1e-1, 1];

// Lines of all models: pale for all that was computed, strong until now.
function drawChart(canvas, example, time, looks) {
  const [pen, width, height] = prepare(canvas);
  if (width === 0) return;
  const span = [width - EDGE.left - EDGE.right, height - EDGE.top - EDGE.bottom];
  const x = (at) => EDGE.left + (span[0] * (at - example.start)) / (example.end - example.start);
  const y = (error) => {
    const share = Math.log(clamp(error, LOWEST, HIGHEST) / LOWEST) / Math.log(HIGHEST / LOWEST);
    return EDGE.top + span[1] * (1 - share);
  };
  Object.assign(pen, { font: "12px system-ui, sans-serif", fillStyle: looks.soft, textBaseline: "middle" });
  pen.textAlign = "right";
  for (const error of GRID) {
    paintShape(pen, { stroke: looks.line, width: 1 }, () => {
      pen.moveTo(EDGE.left, y(error));
      pen.lineTo(width - EDGE.right, y(error));
    });
    pen.fillText(String(error), EDGE.left - 6, y(error));
  }
  drawTimes(pen, example, x, height - EDGE.bottom / 3);
  const touch = { stroke: looks.soft, width: 1.2, dash: [3, 3] };
  paintShape(pen, touch, () => {
    pen.moveTo(EDGE.left, y(example.radius));
    pen.lineTo(width - EDGE.right, y(example.radius));
  });
  for (const track of example.tracks.filter(({ errors }) => errors)) {
    const colour = looks.models[track.model];
    const upto = countUntil(example.moments, time);
    const from = countUntil(example.moments, example.context);
    drawLine(pen, track.errors, example.moments, from, track.errors.length, x, y, { stroke: colour, alpha: 0.3 });
    drawLine(pen, track.errors, example.moments, from, upto, x, y, { stroke: colour, width: 2.4 });
  }
}

function drawLine(pen, errors, moments, from, until, x, y, style) {
  paintShape(pen, style, () => {
    for (let i = from; i < until; i++) pen.lineTo(x(moments[i]), y(errors[i]));
  });
}

function drawTimes(pen, { start, end }, x, height) {
  pen.textAlign = "center";
  const step = end - start > 3 ? 1 : 0.5;
  for (let time = start; time <= end + SLACK; time += step) pen.fillText(time.toFixed(1), x(time), height);
}
