// Second tab: one shot at pool, by the visitor or planned by the model.

const CUE = 0;
const TARGET = 1;
const PLANNER = { rollouts: 160, rounds: 4, elite: 8, width: 0.15, shrink: 0.5 };
const [WEAK, STRONG] = [0.08, 0.3]; // How strong an imagined shot is drawn: those that win stand out.
const FADE = 0.3; // How much of its strength an imagined shot gains with every one after it.

// The balls lie still until the cue ball is struck, at time 0: the last observation of the context.
function beforeShot(model, scene, table, shot) {
  const count = model.config.num_context;
  const times = Array.from({ length: count }, (_, i) => (i - count + 1) * scene.spacing);
  const context = {
    times,
    values: times.map(() => table.flat()),
    controls: times.map((_, i) => (i === count - 1 ? shot : [0, 0])),
  };
  return [context, { times: [scene.spacing], values: [[0, 0]] }];
}

// Imagine a shot. Yields often; returns the imagined path and how close it comes.
function* imagine(model, scene, table, shot) {
  const [context, controls] = beforeShot(model, scene, table, shot);
  const until = scene.ahead * scene.spacing;
  const rollout = model.rollout(context, until, controls);
  while (!rollout.done) yield rollout.step();
  const observed = Array.from({ length: scene.ahead }, (_, i) => Math.min(until, (i + 1) * scene.spacing));
  const times = [...rollout.knots, ...observed].sort((a, b) => a - b);
  const rows = [];
  for (const time of times) {
    rows.push(time > 0 ? rollout.at(time) : table.flat());
    yield;
  }
  const target = rows.map((row) => minus(row.slice(2 * TARGET), scene.pocket));
  const ways = target.slice(1).map((end, i) => closestOnWay(target[i], minus(end, target[i])));
  return { shot, rows, updates: rollout.knots.length, distance: Math.min(...ways) };
}

// The cross-entropy method of `planning/planners.py`: random shots, then shots around each of the
// best, closer from round to round. `found` is told of every shot; returns the best.
function* planShot(model, scene, table, found, settings = PLANNER, random = Math.random) {
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const each = settings.rollouts / settings.rounds;
  const best = [];
  const [slow, fast] = scene.speeds;
  for (let i = 0; i < settings.rollouts; i++) {
    const round = Math.floor(i / each);
    const width = settings.width * settings.shrink ** (round - 1);
    if (i % each === 0) best.sort((a, b) => a.distance - b.distance);
    const around = best[i % Math.min(settings.elite, best.length)]?.shot;
    const speed = slow + (fast - slow) * random();
    const drawn = round
      ? around.map((v) => v + width * normal())
      : randomDirection(random).map((v) => speed * v);
    const made = yield* imagine(model, scene, table, withSpeed(drawn, scene.speeds));
    best.push(made);
    found(made, i + 1);
  }
  return best.reduce((one, two) => (two.distance < one.distance ? two : one));
}

class Pool extends Player {
  constructor(root, { scene, models }) {
    super(root);
    Object.assign(this, { scene, model: models[0], planner: PLANNER, stop: () => {} });
    this.score = { you: [0, 0], model: [0, 0] };
    const find = (selector) => root.querySelector(selector);
    this.status = find(".status");
    this.setup = new Setup({ ...scene, moving: [CUE] }, () => this.changed());
    this.setup.balls = scene.start;
    this.open(this.makeExample(), 0);
    this.panels[0].stage.classList.add("table");
    this.setup.attach(this.panels[0].stage);
    this.setup.set(scene.start);
    this.buttons = [".shoot", ".plan", ".fresh"].map(find);
    this.buttons[0].addEventListener("click", () => {
      if (this.planning) this.changed(); // The visitor was faster.
      this.shoot("you");
    });
    this.buttons[1].addEventListener("click", () => this.plan());
    this.buttons[2].addEventListener("click", () => this.fresh());
    find(".again").addEventListener("click", () => this.rewind());
  }

  get table() {
    return this.setup.balls.map(({ position }) => position);
  }

  get shot() {
    return this.setup.balls[CUE].velocity;
  }

  makeExample() {
    const { scene, model, setup } = this;
    const example = makeExample(scene, setup.balls, scene.ahead, 1);
    example.models = [model];
    const last = this.example?.tracks[1];
    example.tracks.push(last ? { ...last, candidates: [] } : pendingTrack(model, example));
    return example;
  }

  changed() {
    this.pause();
    this.stop();
    this.planning = false;
    this.renew(this.makeExample(), 0);
    this.say("Aim by dragging the arrow, then shoot; or let the model plan.");
    this.stop = inSlices(this.compute(this.example));
  }

  // What the model expects of the shot as it is aimed.
  *compute(example, candidates = []) {
    const track = yield* predictTrack(this.model, ...this.question(example));
    example.tracks[1] = Object.assign(track, { ahead: true, candidates });
    if (this.example === example) this.renew(example, this.time);
  }

  question(example) {
    const [context, controls] = beforeShot(this.model, this.scene, this.table, this.shot);
    return [context, example, controls];
  }

  rewind() {
    this.pause();
    this.seek(0);
  }

  fresh() {
    const places = randomPlaces(2, this.scene.radius);
    const velocity = randomDirection();
    this.setup.set(places.map((position, i) => ({ position, velocity: i === CUE ? velocity : [0, 0] })));
  }

  // Play the shot as it is aimed, by the true simulator; its end is told when it is reached.
  shoot(who) {
    const { motion } = this.example;
    const distance = closestTo(motion, TARGET, this.scene.pocket);
    this.result = { who, distance, won: distance < this.scene.pocket[2] };
    this.pause();
    this.seek(0);
    this.play();
  }

  plan() {
    this.pause();
    this.stop();
    this.seek(0);
    this.planning = true;
    this.stop = inSlices(this.search(this.example), () => this.show());
  }

  *search(example) {
    const candidates = [];
    let updates = 0;
    example.tracks[1] = { ...pendingTrack(this.model, example), candidates };
    this.renew(example, 0);
    const found = (made, count) => {
      updates += made.updates;
      const full = made.distance < this.scene.pocket[2] ? STRONG : WEAK;
      candidates.push({ rows: made.rows, strength: 0, full });
      for (const one of candidates) one.strength += FADE * (one.full - one.strength);
      this.say(`${count} of ${this.planner.rollouts} shots imagined, ${updates} updates`, false);
    };
    const best = yield* planShot(this.model, this.scene, this.table, found, this.planner);
    this.setup.balls[CUE] = { ...this.setup.balls[CUE], velocity: best.shot };
    this.setup.place();
    const planned = this.makeExample();
    this.renew(planned, 0);
    yield* this.compute(planned, candidates.map((one) => ({ ...one, strength: one.strength / 2 })));
    this.planned = best;
    this.planning = false;
    this.shoot("model");
  }

  advance(now) {
    super.advance(now);
    if (this.time >= this.example.end && this.result) this.finish();
  }

  finish() {
    const { who, distance, won } = this.result;
    const near = `The target came within ${distance.toFixed(3)} of the corner; ${this.scene.pocket[2]} is in.`;
    const expected = who === "model" ? ` The model had imagined ${this.planned.distance.toFixed(3)}.` : "";
    this.score[who][0] += won;
    this.score[who][1] += 1;
    const shots = Object.entries(this.score).filter(([, [, all]]) => all);
    const score = shots.map(([one, [sunk, all]]) => `${one} ${sunk} of ${all}`).join(", ");
    this.result = null;
    this.say(`${won ? "Pocketed" : "Missed"}. ${near}${expected} Pocketed so far: ${score}.`);
  }

  show() {
    super.show();
    this.root.classList.toggle("setting", this.frame === null && this.time <= this.example.start);
  }

  pause() {
    super.pause();
    if (this.example) this.show();
  }

  // A live region is not to read out every count.
  say(text, aloud = true) {
    this.status.setAttribute("aria-live", aloud ? "polite" : "off");
    setText(this.status, text);
  }
}
