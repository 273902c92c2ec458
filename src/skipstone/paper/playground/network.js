// Networks on the shipped weights. Weights are single precision, as trained; sums are double.

const NUMBERS = { F32: Float32Array, F64: Float64Array };
const ACTIVATIONS = {
  relu: (x) => (x > 0 ? x : 0),
  silu: (x) => x / (1 + Math.exp(-x)),
};
const sigmoid = (x) => 1 / (1 + Math.exp(-x));

// Tensors of a safetensors file: eight bytes of length, a header in JSON, then the numbers.
function readTensors(bytes) {
  const start = bytes.byteOffset;
  const length = Number(new DataView(bytes.buffer, start, 8).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const tensors = {};
  for (const [name, { dtype, shape, data_offsets: ends }] of Object.entries(header)) {
    if (name === "__metadata__" || !(dtype in NUMBERS)) continue;
    const [begin, end] = ends.map((offset) => start + 8 + length + offset);
    tensors[name] = { shape, numbers: new NUMBERS[dtype](bytes.buffer.slice(begin, end)) };
  }
  return tensors;
}

// weight · x + bias. Four sums at a time, because each waits for the one before it.
function affine(weight, bias, x) {
  const inputs = x.length;
  const out = new Float64Array(weight.length / inputs);
  for (let row = 0; row < out.length; row++) {
    const at = row * inputs;
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    let i = 0;
    for (; i + 3 < inputs; i += 4) {
      a += weight[at + i] * x[i];
      b += weight[at + i + 1] * x[i + 1];
      c += weight[at + i + 2] * x[i + 2];
      d += weight[at + i + 3] * x[i + 3];
    }
    for (; i < inputs; i++) a += weight[at + i] * x[i];
    out[row] = (bias ? bias[row] : 0) + (a + b) + (c + d);
  }
  return out;
}

// Two rows of numbers joined one by one; several times faster than `Float64Array.from`.
function zip(a, b, join) {
  const out = new Float64Array(a.length);
  for (let i = 0; i < out.length; i++) out[i] = join(a[i], b[i]);
  return out;
}

class Linear {
  constructor(tensors, name) {
    this.weight = tensors[`${name}.weight`].numbers;
    this.inputs = tensors[`${name}.weight`].shape[1];
    this.bias = tensors[`${name}.bias`]?.numbers;
  }

  apply(x) {
    return affine(this.weight, this.bias, x);
  }

  // The product with the columns from one to another, as a layer without a bias.
  columns(begin, end) {
    const rows = this.weight.length / this.inputs;
    const part = new Float64Array(rows * (end - begin));
    for (let row = 0; row < rows; row++)
      part.set(this.weight.subarray(row * this.inputs + begin, row * this.inputs + end), row * (end - begin));
    return part;
  }
}

// An MLP whose inner layers add to their input. Like in Python it comes apart after its first layer.
class ResidualMLP {
  constructor(tensors, name, activation) {
    this.activate = ACTIVATIONS[activation];
    this.first = new Linear(tensors, `${name}.first`);
    this.inner = [];
    while (`${name}.inner.${this.inner.length}.weight` in tensors)
      this.inner.push(new Linear(tensors, `${name}.inner.${this.inner.length}`));
    this.last = new Linear(tensors, `${name}.last`);
  }

  afterFirst(first) {
    let features = first.map(this.activate);
    for (const layer of this.inner) {
      const inner = layer.apply(features);
      features = zip(features, inner, (x, more) => x + this.activate(more));
    }
    return this.last.apply(features);
  }

  apply(x) {
    return this.afterFirst(this.first.apply(x));
  }
}

// One update of a GRU; `suffix` is what its tensors' names end in.
class GRU {
  constructor(tensors, name, suffix = "") {
    const [input, state] = ["ih", "hh"].map((part) => ({
      weight: tensors[`${name}.weight_${part}${suffix}`].numbers,
      bias: tensors[`${name}.bias_${part}${suffix}`].numbers,
    }));
    Object.assign(this, { input, state });
  }

  apply(x, h) {
    const size = h.length;
    const given = affine(this.input.weight, this.input.bias, x);
    const kept = affine(this.state.weight, this.state.bias, h);
    return h.map((old, i) => {
      const reset = sigmoid(given[i] + kept[i]);
      const keep = sigmoid(given[size + i] + kept[size + i]);
      const made = Math.tanh(given[2 * size + i] + reset * kept[2 * size + i]);
      return made + keep * (old - made);
    });
  }
}
