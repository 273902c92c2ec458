// PC-ODE and RNN, and the loop that rolls them out: what `models/pcode.py`, `rnn.py` and
// `rollout.py` do, for one trajectory. The tests hold both to the same numbers.

const CHORD = [0.1, 1]; // Shortest and longest stretch over which a rate of change is taken.
const SAME_TIME = 1e-6; // Times closer than this, in the model's unit, are the same.
const LEAK = 0.01; // Slope of a LeakyReLU below zero.

// Known inputs after a context: each holds from its time until the next one's.
class Signal {
  constructor(times, values, unit) {
    Object.assign(this, { times, values, unit });
  }

  place(time) {
    return this.times.findLastIndex((start) => start <= time + SAME_TIME * this.unit);
  }

  at(time) {
    return this.values[this.place(time)];
  }

  nextChange(time) {
    const differs = (_, i) => this.values[i].some((value, j) => value !== this.values[i - 1][j]);
    const now = this.place(time);
    const next = this.times.findIndex((start, i) => i > now && differs(start, i));
    return next < 0 ? Infinity : this.times[next];
  }

  // ∫u and ∫∫u from one time to another, side by side, in the model's unit of time.
  integrals(begin, end) {
    const size = this.values[0].length;
    const sums = new Float64Array(2 * size);
    for (let place = this.place(begin), from = begin; from < end; place++) {
      const until = Math.min(end, this.times[place + 1] ?? Infinity);
      addIntegrals(sums, this.values[place], (until - from) / this.unit);
      from = until;
    }
    return sums;
  }
}

// Hold a control for so long.
function addIntegrals(sums, control, length) {
  const size = control.length;
  control.forEach((u, i) => {
    sums[size + i] += sums[i] * length + (u * length ** 2) / 2;
    sums[i] += u * length;
  });
  return sums;
}

// What both models have: units, and the encoder's input.
class SteppingModel {
  constructor({ title, config, tensors }) {
    Object.assign(this, { title, config, minStep: 0, rateUnit: 1, crossesControls: false });
    this.motion = config.reads === "motion"; // Models that know no `reads` read values.
    this.moves = config.readout === "displacement";
    this.encoder = new ResidualMLP(tensors, "encoder", config.activation);
    this.decoder = new ResidualMLP(tensors, "decoder", config.activation);
  }

  // A config has one center and scale for all features, or one for each.
  scaled(values, of = "") {
    const [center, scale] = [this.config[`${of}center`], this.config[`${of}scale`]];
    return Float64Array.from(values, (x, i) => (x - (center[i] ?? center[0])) / (scale[i] ?? scale[0]));
  }

  inDataUnits(values) {
    const { center, scale } = this.config;
    return Array.from(values, (x, i) => (center[i] ?? center[0]) + x * (scale[i] ?? scale[0]));
  }

  encode(values, rates, control, elapsed) {
    const rate = this.motion ? rates : [];
    return this.encoder.apply(Float64Array.of(...values, ...rate, ...control, ...this.timeInput(elapsed)));
  }

  // Rate of change from one observation to the next.
  rates(before, after, gap) {
    const chord = Math.max(gap, CHORD[0]);
    return zip(after, before, (now, then) => (this.rateUnit * (now - then)) / chord);
  }

  rollout(context, until, controls) {
    return new Rollout(this, context, until, controls);
  }
}

class PCODE extends SteppingModel {
  constructor(made) {
    super(made);
    const { config, tensors } = made;
    const half = config.hidden / 2;
    this.minStep = this.rateUnit = config.min_step;
    this.cell = new GRU(tensors, "cell");
    this.stepSize =
      config.step_layers === 1
        ? new Linear(tensors, "step_size")
        : new ResidualMLP(tensors, "step_size", config.activation);
    this.positionColumns = this.decoder.first.columns(0, half);
    this.crossesControls = "drive" in tensors;
    if (this.crossesControls) this.driveEffect = this.readDrive(tensors.drive.numbers, half);
  }

  // What the controls' integrals add to the state: B₁∫u + s·B₂∫∫u to the position, B₂∫u to the velocity.
  readDrive(drive, half) {
    const [size, scale] = [this.config.control, this.config.velocity_scale];
    const effect = new Float64Array(4 * half * size);
    for (let row = 0; row < half; row++)
      for (let i = 0; i < size; i++) {
        const [ofPosition, ofVelocity] = [drive[row * size + i], drive[(half + row) * size + i]];
        effect[2 * row * size + i] = ofPosition;
        effect[2 * row * size + size + i] = scale * ofVelocity;
        effect[2 * (half + row) * size + i] = ofVelocity;
      }
    return effect;
  }

  timeInput() {
    return []; // The state has moved by it already.
  }

  update(state, encoded) {
    return this.cell.apply(encoded, state);
  }

  move(state, length, integrals) {
    const half = state.length / 2;
    const scale = this.config.velocity_scale * length;
    const moved = state.map((x, i) => (i < half ? x + scale * state[half + i] : x));
    return integrals ? zip(moved, affine(this.driveEffect, null, integrals), (x, more) => x + more) : moved;
  }

  nextStep(state) {
    const { min_step, max_step, whole_steps } = this.config;
    const [raw] = this.stepSize.apply(state);
    const step = clamp(min_step + (raw > 0 ? raw : LEAK * raw), min_step, max_step);
    return whole_steps ? Math.max(Math.round(step), Math.ceil(min_step)) : step;
  }

  // The first layer is affine and the state moves on a line, so its output does, too.
  segment(state, values, length, drive) {
    const { decoder, config, motion } = this;
    const first = decoder.first.apply(state);
    const velocity = state.subarray(config.hidden / 2).map((x) => config.velocity_scale * x);
    const slope = affine(this.positionColumns, null, velocity);
    const decode = (offset) => {
      let inner = zip(first, slope, (x, change) => x + change * offset);
      if (drive) {
        const pushed = affine(this.driveEffect, null, drive(offset));
        inner = zip(inner, affine(decoder.first.weight, null, pushed), (x, more) => x + more);
      }
      return decoder.afterFirst(inner);
    };
    const start = this.moves ? decoder.afterFirst(first) : null;
    const origin = start ? zip(values, start, (x, away) => x - away) : new Float64Array(values.length);
    const at = (offset) => zip(origin, decode(offset), (x, moved) => x + moved);
    const end = at(length);
    const chord = clamp(length, ...CHORD);
    const before = motion ? at(length - chord) : null;
    const rates = motion ? zip(end, before, (x, then) => (x - then) * (this.minStep / chord)) : null;
    return { at, end, rates };
  }
}

class RNN extends SteppingModel {
  constructor(made) {
    super(made);
    this.cell = new GRU(made.tensors, "cell", "_l0");
  }

  timeInput(elapsed) {
    return [elapsed];
  }

  update(state, encoded) {
    return this.cell.apply(encoded, state);
  }

  move(state) {
    return state;
  }

  nextStep() {
    return 1;
  }

  // One decoding per interval, across which the output moves evenly.
  segment(state, values, length) {
    const inputs = new Float64Array(state.length + 1);
    inputs.set(state);
    inputs[state.length] = length;
    const decoded = this.decoder.apply(inputs);
    const displacement = this.moves ? decoded : zip(decoded, values, (x, begin) => x - begin);
    const at = (offset) => zip(values, displacement, (x, moved) => x + (offset / length) * moved);
    const end = zip(values, displacement, (x, moved) => x + moved);
    return { at, end, rates: this.motion ? this.rates(values, end, length) : null };
  }
}

// From knot to knot: `step` adds one segment, so that whoever calls it can stop to draw.
// `context` has `times`, `values` and, if the model takes any, `controls`, one row per observation;
// `controls` has times and values of those after it.
class Rollout {
  constructor(model, context, until, controls = { times: [], values: [] }) {
    const { control, time_unit: unit, num_context: count } = model.config;
    const tail = (rows) => rows.slice(-count);
    const scaled = (rows) => rows.map((row) => model.scaled(row, "control_"));
    Object.assign(this, { model, unit, until, knots: [], segments: [] });
    const times = tail(context.times);
    const known = control ? scaled(tail(context.controls)) : times.map(() => []);
    this.read(times, tail(context.values).map((row) => model.scaled(row)), known);
    this.knot = times.at(-1);
    this.signal = null;
    if (control) {
      const later = [known.at(-1), ...scaled(controls.values)];
      this.signal = new Signal([this.knot, ...controls.times], later, unit);
    }
    // A remainder shorter than the shortest step is taken in by the step before it.
    this.shortest = Math.max(model.minStep - SAME_TIME, SAME_TIME) * unit;
  }

  // An update at every observation of the context.
  read(times, values, controls) {
    const { model } = this;
    this.state = new Float64Array(model.config.hidden);
    times.forEach((time, i) => {
      const gap = i ? (time - times[i - 1]) / this.unit : 0;
      if (i) {
        const drive = () => addIntegrals(new Float64Array(2 * controls[i].length), controls[i - 1], gap);
        this.state = model.move(this.state, gap, model.crossesControls ? drive() : null);
      }
      const rates = i ? model.rates(values[i - 1], values[i], gap) : values[i].map(() => 0);
      this.state = model.update(this.state, model.encode(values[i], rates, controls[i], gap));
    });
    this.values = values.at(-1);
  }

  get done() {
    return this.knot >= this.until;
  }

  step() {
    const { model, signal, unit, knot, state } = this;
    const driven = signal && model.crossesControls;
    const limit = signal && !driven ? Math.min(this.until, signal.nextChange(knot)) : this.until;
    const wanted = knot + model.nextStep(state) * unit;
    const following = limit - wanted < this.shortest ? limit : wanted;
    const length = (following - knot) / unit;
    const drive = driven ? (offset) => signal.integrals(knot, knot + offset * unit) : null;
    const segment = model.segment(state, this.values, length, drive);
    this.knots.push(knot);
    this.segments.push(segment);
    this.knot = following;
    if (this.done) return;
    const control = signal ? signal.at(following) : [];
    const moved = model.move(state, length, drive ? drive(length) : null);
    this.values = segment.end;
    this.state = model.update(moved, model.encode(segment.end, segment.rates, control, length));
  }

  // The prediction at a time; at a knot the one before the update.
  at(time) {
    const place = Math.max(0, this.knots.findLastIndex((knot) => knot < time));
    return this.model.inDataUnits(this.segments[place].at((time - this.knots[place]) / this.unit));
  }
}

const KINDS = { pcode: PCODE, rnn: RNN };

// A model from its embedded description: kind, title, config, and the bytes of its weights.
function readModel({ kind, title, config, weights }) {
  return new KINDS[kind]({ title, config, tensors: readTensors(bytesOf(weights)) });
}
