// Live examples: the same records that the report replays, computed here instead of read.

const FINE = 4; // Moments for each interval between observations.
const SECONDS_PER_TIME = 2.6; // How long a unit of time takes to play.
const SLICE = 4; // Milliseconds of each frame that long computations may take.

// Run a generator a few milliseconds per frame, so that frames keep coming, and paint once in each.
// Returns how to stop it.
function inSlices(job, paint = () => {}) {
  let frame = requestAnimationFrame(function go() {
    const stop = performance.now() + SLICE;
    do if (job.next().done) return;
    while (performance.now() < stop);
    paint();
    frame = requestAnimationFrame(go);
  });
  return () => cancelAnimationFrame(frame);
}

// An example of so many observations after the context, whose first `given` the models are shown.
function makeExample(scene, balls, ahead, given) {
  const count = given + ahead;
  const observed = Array.from({ length: count }, (_, i) => i * scene.spacing);
  const moments = Array.from({ length: (count - 1) * FINE + 1 }, (_, i) => (i * scene.spacing) / FINE);
  const end = observed.at(-1);
  const motion = simulate(balls, end, scene.radius);
  const truth = moments.map((moment) => positionsAt(motion, moment));
  const { collisions } = motion;
  return {
    task: scene.task,
    kind: "plane",
    radius: scene.radius,
    pocket: scene.pocket ?? null,
    labels: scene.labels,
    box: [0, 0, 1, 1],
    observed,
    context: observed[given - 1],
    moments,
    truth,
    motion,
    collisions,
    models: [],
    tracks: [{ rows: truth, updates: collisions.map((hit) => hit.time) }],
    start: 0,
    end,
    seconds: SECONDS_PER_TIME * end,
    balls: balls.length,
  };
}

// Roll a model out and read its path at the example's moments. Yields often; returns a track.
function* predictTrack(model, context, example, controls) {
  const rollout = model.rollout(context, example.end, controls);
  while (!rollout.done) yield rollout.step();
  const rows = [];
  for (const [i, moment] of example.moments.entries()) {
    rows.push(moment > example.context + SLACK ? rollout.at(moment) : example.truth[i]);
    yield;
  }
  return { model: model.title, rows, updates: rollout.knots, errors: errorsOf(rows, example.truth) };
}

// Root mean square error over the coordinates, at each moment.
function errorsOf(rows, truth) {
  return rows.map((row, i) => {
    const squares = row.map((x, j) => (x - truth[i][j]) ** 2);
    return Math.sqrt(squares.reduce((sum, x) => sum + x, 0) / row.length);
  });
}

// What stands in a model's place until it has been computed: the truth, without an update.
function pendingTrack(model, example) {
  return { model: model.title, rows: example.truth, updates: [], errors: null };
}
